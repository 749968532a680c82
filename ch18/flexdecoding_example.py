"""A decode step over a static cache that fills up: both sides of ch18:flexdecoding at one capacity and several lengths.

    ./setup.sh python ch18/flexdecoding_example.py --capacity 16384 --length 1024 --length 8192

The dense mask reads the whole capacity whatever the length; flex_attention's block mask reads the blocks that hold tokens. Both sides are
checked against the pair's reference; exit 1 where an answer is wrong.
"""

import argparse
import sys
from pathlib import Path

from common.python.child.sides.alone import run_alone, script_device

FOLDER = Path(__file__).parent


def main():
    device = script_device()
    on_gpu = device.type == "cuda"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sequences", type=int, default=32 if on_gpu else 2)
    parser.add_argument("--capacity", type=int, default=16384 if on_gpu else 512, help="tokens that a sequence has room for")
    parser.add_argument("--length", type=int, action="append", help="tokens of each sequence; may be given several times")
    parser.add_argument("--heads", type=int, default=32 if on_gpu else 4)
    parser.add_argument("--kv-heads", type=int, default=8 if on_gpu else 2)
    parser.add_argument("--dim", type=int, default=128 if on_gpu else 16, help="elements a head: a power of two, at least 16")
    chosen = parser.parse_args()
    lengths = chosen.length or [max(1, chosen.capacity // part) for part in (16, 4, 1)]
    if min(chosen.sequences, chosen.kv_heads, *lengths) < 1 or chosen.heads < chosen.kv_heads or chosen.heads % chosen.kv_heads:
        parser.error("found a size below 1, or heads that are no multiple of --kv-heads; expected sizes of at least 1")
    if max(lengths) > chosen.capacity:
        parser.error(f"found --length {max(lengths)}; expected at most the capacity, {chosen.capacity}")
    if chosen.dim < 16 or chosen.dim & (chosen.dim - 1):
        parser.error(f"found --dim {chosen.dim}; expected a power of two of at least 16")
    print(f"{chosen.sequences} sequences with room for {chosen.capacity} tokens on {device.type}; times in ms")
    print(f"{'length':>7}{'dense mask':>12}{'block mask':>12}{'gain':>8}{'error / tolerance':>19}")
    failed = False
    for length in lengths:
        shape = {name: getattr(chosen, name) for name in ("sequences", "capacity", "heads", "kv_heads", "dim")}
        shape |= {"shortest": length, "longest": length}
        dense, blocks = (run_alone(FOLDER / f"{side}_flexdecoding.py", shape, device) for side in ("baseline", "optimized"))
        gain, error = dense.milliseconds / blocks.milliseconds, max(dense.error, blocks.error)
        print(f"{length:>7}{dense.milliseconds:>12.3f}{blocks.milliseconds:>12.3f}{gain:>7.2f}x{error:>19.2f}")
        failed |= not error <= 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
