"""What settings of PyTorch's allocator do to a cache that grows: how much is in use and how much is reserved, each in its own process.

./setup.sh python ch13/custom_allocator.py

Exit 1 where the answers differ, or expandable segments do not reserve less than PyTorch does as it is. Needs a GPU.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from shared_growing_cache import grow

SETTINGS = ("", "expandable_segments:True", "roundup_power2_divisions:1")  # the last rounds sizes up to powers of two
CHUNKS, TOKENS, WIDTH = 32, 2048, 1024
ONE = "--one"  # of the settings, in this process


def measured():
    """The step's answer in one number, and the most bytes in use and reserved."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    x = torch.randn(TOKENS, WIDTH, device=device)
    step = grow(x, torch.randn(WIDTH, device=device) / WIDTH**0.5, torch.linspace(0.5, 2.0, CHUNKS, device=device))
    answer = step().double().sum().item()
    return {"answer": answer, "in_use": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}


def measured_with(setting):
    """The same in a fresh process with `setting`."""
    environment = os.environ | {"PYTORCH_ALLOC_CONF": setting}
    done = subprocess.run([sys.executable, __file__, ONE], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def faults(found):
    """A sentence for each way in which the figures by setting, `found`, are not as they should be."""
    if len({round(each["answer"], 3) for each in found.values()}) > 1:
        yield f"found answers {[each['answer'] for each in found.values()]}; expected the same under every setting"
    reserved = {setting: each["reserved"] for setting, each in found.items()}
    if reserved["expandable_segments:True"] >= reserved[""]:
        yield f"found {reserved} bytes reserved; expected fewer with expandable segments than without"


def main():
    """Every setting, one after the other."""
    found = {setting: measured_with(setting) for setting in SETTINGS}
    for setting, each in found.items():
        print(f"{setting or 'as it is'}: {each['in_use'] / 1e9:.2f} GB in use, {each['reserved'] / 1e9:.2f} GB reserved")
    wrong = list(faults(found))
    for sentence in wrong:
        print(f"{Path(__file__).name}: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("ch13/custom_allocator.py: found no CUDA device; expected one, whose allocator is looked at", file=sys.stderr)
        sys.exit(5)
    if ONE in sys.argv:
        print(json.dumps(measured()))
    else:
        sys.exit(main())
