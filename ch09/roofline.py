"""The roofline of this chapter: how many flops a pair does for a byte of DRAM, which ceiling that meets, and how near each side came to it.

./setup.sh python ch09/roofline.py [expectations file]

Work is what each workload declares, times are those that were accepted for a GPU, and a ceiling is what that GPU was measured to give.
"""

import sys
from pathlib import Path

from common.python.child.sides.loader import load_workload
from common.python.gate.expectations import read_expectations

CHAPTER = Path(__file__).parent
RATES = ("bf16", "fp32", "fp32_fma")  # flop/s: of products, and of the CUDA cores alone
ROW = "{:14} {:8} {:>12} {:>10} {:>22} {:>22} {:>22}"


def rate(roof, flops, moved, ns):
    """What a side did in `ns` of what `roof`, a key of its work, limits: flops, or bytes."""
    return f"{flops / ns / 1e3:.1f} TFLOP/s" if roof in RATES else f"{moved / ns / 1e3:.2f} TB/s"


def rows(expectations):
    """A line for each pair and shape that was accepted: the flops a byte, the ceiling that is nearest, and what both sides reach of it."""
    for name, by_shape in read_expectations(expectations).pairs.items():
        workload = load_workload(CHAPTER / f"workload_{name}.py")
        for shape_name, accepted in by_shape.items():
            work = workload.work(**accepted.shape)
            flops = sum(work.get(key, 0) for key in RATES)
            moved = work["dram_read"] + work["dram_write"]
            shares = {side: accepted.sides[side].share for side in ("baseline", "optimized")}
            roof = shares["optimized"]
            reached = (f"{rate(roof.key, flops, moved, share.ceiling_ns / share.share)} = {share.share:.0%}" for share in shares.values())
            yield ROW.format(name, shape_name, f"{flops / moved:.4g}", roof.key, rate(roof.key, flops, moved, roof.ceiling_ns), *reached)


if __name__ == "__main__":
    print(ROW.format("pair", "shape", "flops/byte", "limited by", "ceiling", "baseline", "optimized"))
    for line in rows(Path(sys.argv[1]) if len(sys.argv) > 1 else CHAPTER / "expectations_h200.json"):
        print(line)
