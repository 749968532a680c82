"""Gradient of a linear layer's weight: w[r, c] = sum over t of x[t, r] * g[t, c], in float32.

The baseline is made to spill: 256 sums per thread exceed 255 registers by design. ch09:tiling is about choosing such a tile.

Predicted: cycles of the SM's memory pipe per 8 rows of x and g, with spills ending in the L1. Measured: RESULTS.md; the gain is larger.

Why: a store to local memory goes on to the L2. The 566 in the loop are 2264 bytes per thread for every 8 rows, 76 GB in all.
At the card's `l2_write` they take seven eighths of the baseline's time. The L2 is the baseline's busiest unit (lts__throughput, H200),
and nearly idle in the optimized side. Hypothesis: spills that are read back and miss the L1 are the rest; they were not counted.

The optimized side stays below its ceiling: registers leave room for two blocks per SM (launch__occupancy_limit_registers), and all warps of
a block load, meet, multiply and meet again. Its pipes are 69 % busy, cuBLAS's 87 % (sm__throughput).
No side moves the 201 MB declared: x and g exceed the L2, so some rows are fetched again. It is 398 MB in the optimized side and 577 in
cuBLAS (dram__bytes.sum), a few percent of what DRAM can do.
"""
# traffic: x and g are 134 MB and the L2 holds 60: each block reads all of its 4096 rows, so some are fetched again

import torch

from common import Spec, Workload


def inputs(rand, depth, rows, cols):
    return {"x": rand.normal(depth, rows), "g": rand.normal(depth, cols, std=depth**-0.5)}  # sums of unit scale


def work(depth, rows, cols):
    return {"fp32": 2 * depth * rows * cols, "dram_read": 4 * depth * (rows + cols), "dram_write": 4 * rows * cols}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda depth, rows, cols: {"w": Spec((rows, cols), torch.float32)},
    reference=lambda x, g: x.T @ g,
    time_at={"depth": 4096, "rows": 4096, "cols": 4096},  # 256 blocks of 256 x 256 results, one an SM, or 1024 of 128 x 128, two an SM
    check_at=(
        {"depth": 1, "rows": 1, "cols": 1},
        {"depth": 9, "rows": 130, "cols": 5},
        {"depth": 16, "rows": 3, "cols": 259},
    ),
    work=work,
    # 4096 FMAs one after the other, emulated, are off by 1.4e-5 in the worst of 3 M sums; times 2.
    rtol=0.0,
    atol=3e-5,
)
