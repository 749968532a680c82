"""Smooth the rows of a float32 matrix from left to right: y[r, t] = 15/16 y[r, t - 1] + 1/16 x[r, t], and y[r, -1] = 0.

Rows are whole 16 bytes.

Expected 1.5x, and 1.34x on an H200: memory answers later than after the 1000 cycles that were taken. Of a tile's 2460 cycles the baseline
waits 1420 for its loads, and the optimized side, which smooths meanwhile, still 1020 of 1800: long_scoreboard is 4.13 and 3.04 cycles for
each of 343 and 336 instructions. That is what stops it at 51 % of its ceiling: a warp an SM, and one tile ahead. Bulk copies wait for 690,
but their tile is 520 instructions (smsp__inst_executed), most of what is more being one lane's: 1970 cycles, and 47 %.
"""

import torch

from common import Spec, Workload


def reference(x):
    y, last = torch.empty_like(x), torch.zeros_like(x[:, 0])
    for now, smoothed in zip(x.T, y.T, strict=True):
        last = torch.lerp(last, now, 1 / 16, out=smoothed)
    return y


WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=reference,
    time_at={"rows": 4224, "cols": 8192},  # few rows, with much to do one after the other: 32 rows, a warp, for each SM of an H200
    check_at=(
        {"rows": 1, "cols": 4},
        {"rows": 32, "cols": 64},  # one tile exactly
        {"rows": 33, "cols": 196},  # a row and 16 bytes more than three tiles
        {"rows": 70, "cols": 128},
    ),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    # A step rounds values near 0.2 to 2^-27, and 15/16 of it stays: the worst of 3 x 35 million, emulated, is off by 1.9e-7; times 2.
    rtol=0.0,
    atol=4e-7,
)
