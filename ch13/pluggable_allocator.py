"""A cache that grows, on three allocators: PyTorch's as it is, with expandable segments, and the page pool of pluggable_allocator.cu.

./setup.sh python ch13/pluggable_allocator.py

Says how much memory the GPU has less after the steps, by cudaMemGetInfo, and how long a step takes. PyTorch keeps no figures of an
allocator that is not its own. Exit 1 where answers differ, or the pool holds no less than the others. Needs a GPU and nvcc.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from shared_growing_cache import grow

from common.python.build.nvcc import build
from common.python.project import PROJECT_ROOT
from common.python.session.session import BUILD_CACHE

POOL = "page pool"
ALLOCATORS = {"as it is": "", "expandable segments": "expandable_segments:True", POOL: ""}  # with the setting of PyTorch's own
SOURCE = Path(__file__).with_suffix(".cu")
ARCHITECTURES = ("90",)  # of no consequence: there are no kernels. To ask for the GPU's own would start PyTorch's allocator
FUNCTIONS = ("page_pool_malloc", "page_pool_free")
CHUNKS, TOKENS, WIDTH = 32, 2048, 1024
STEPS = 5
ONE = "--one"  # of the allocators, in this process


def plugged_in():
    """Have PyTorch ask the pool for all memory, from now on."""
    library = build(SOURCE, ARCHITECTURES, cache=BUILD_CACHE, root=PROJECT_ROOT).library
    torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator(str(library), *FUNCTIONS))


def step_of(tokens, device):
    """A step on chunks of `tokens` tokens; the same values in every process."""
    torch.manual_seed(0)
    x = torch.randn(tokens, WIDTH, device=device)
    return grow(x, torch.randn(WIDTH, device=device) / WIDTH**0.5, torch.linspace(0.5, 2.0, CHUNKS, device=device))


def timed(step):
    """The seconds of a step, with all its work on the GPU."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def measured():
    """The step's answer in one number, what the GPU has less of after the steps, and a step's median time."""
    device = torch.device("cuda")
    step_of(1, device)()  # loads the kernels, which take memory of their own
    torch.cuda.synchronize()
    before, _ = torch.cuda.mem_get_info()
    step = step_of(TOKENS, device)
    answer = step().double().sum().item()
    seconds = statistics.median(timed(step) for _ in range(STEPS))
    after, _ = torch.cuda.mem_get_info()
    return {"answer": answer, "held": before - after, "seconds": seconds}


def measured_with(allocator):
    """The same in a fresh process."""
    environment = os.environ | {"PYTORCH_ALLOC_CONF": ALLOCATORS[allocator]}
    command = [sys.executable, __file__, ONE, allocator]
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)


def faults(found):
    """A sentence for each way in which the figures by allocator, `found`, are not as they should be."""
    if len({round(each["answer"], 3) for each in found.values()}) > 1:
        yield f"found answers {[each['answer'] for each in found.values()]}; expected the same with every allocator"
    held = {allocator: each["held"] for allocator, each in found.items()}
    if held[POOL] >= min(bytes_held for allocator, bytes_held in held.items() if allocator != POOL):
        yield f"found {held} bytes held; expected fewer with the page pool than with any other"


def main():
    """Every allocator, one after the other."""
    found = {allocator: measured_with(allocator) for allocator in ALLOCATORS}
    for allocator, each in found.items():
        print(f"{allocator}: {each['held'] / 1e9:.2f} GB held, {each['seconds'] * 1e3:.1f} ms a step")
    wrong = list(faults(found))
    for sentence in wrong:
        print(f"{Path(__file__).name}: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("ch13/pluggable_allocator.py: found no CUDA device; expected one, whose memory is looked at", file=sys.stderr)
        sys.exit(5)
    if ONE in sys.argv:
        if sys.argv[-1] == POOL:
            plugged_in()
        print(json.dumps(measured()))
    else:
        sys.exit(main())
