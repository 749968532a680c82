"""Decode steps through layers of gpt-oss-120b's shapes, by both sides of ch16:gpt_oss_120b_inference: tokens per second and layer.

    ./setup.sh python ch16/gpt_oss_120b_inference.py --layers 2 --sequences 8 --context 2048

Weights are random, and a GPU of 80 GB holds a few of the 36 layers in bf16, which the baseline unpacks them to. On a CPU the kernels run
in Triton's interpreter at a small width, to be checked; the times there say nothing. Exit 1 where an answer is wrong.
"""

import argparse
import sys
from pathlib import Path

from common.python.child.sides.alone import run_alone, script_device

FOLDER = Path(__file__).parent
LAYERS = 36  # of the published model


def main():
    device = script_device()
    on_gpu = device.type == "cuda"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=2, help=f"1 to {LAYERS}")
    parser.add_argument("--sequences", type=int, default=8 if on_gpu else 2)
    parser.add_argument("--context", type=int, default=2048 if on_gpu else 16, help="tokens in each sequence's cache")
    chosen = parser.parse_args()
    if not 1 <= chosen.layers <= LAYERS or min(chosen.sequences, chosen.context) < 1:
        parser.error(f"found {chosen.layers} layers; expected 1 to {LAYERS}, and at least one sequence and one token of context")
    widths = {"hidden": 2880, "heads": 64, "experts": 128} if on_gpu else {"hidden": 64, "heads": 8, "experts": 8}
    shape = {"layers": chosen.layers, "sequences": chosen.sequences, "context": chosen.context, **widths}
    print(f"{chosen.layers} layers of {widths['hidden']} elements and {widths['experts']} experts on {device.type}")
    print(f"{'experts in':<12}{'ms a step':>10}{'tokens/s a layer':>18}{'error / tolerance':>19}")
    failed = False
    for side, name in (("baseline", "bf16"), ("optimized", "MXFP4")):
        ran = run_alone(FOLDER / f"{side}_gpt_oss_120b_inference.py", shape, device)
        rate = 1e3 * chosen.sequences * chosen.layers / ran.milliseconds
        print(f"{name:<12}{ran.milliseconds:>10.3f}{rate:>18.0f}{ran.error:>19.2f}")
        failed |= not ran.error <= 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
