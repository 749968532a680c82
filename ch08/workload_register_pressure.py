"""Gradient of a linear layer's weight: w[r, c] = sum over t of x[t, r] * g[t, c], in float32.

Expected 2.3x, and 4.99x on an H200 (2026-11-22). The 2.3x let spills end in the L1. But a store to local memory goes on to the L2: the 566
in the loop are 2264 bytes a thread for every 8 rows of x and g, 76 GB, 12.7 of the baseline's 17.9 ms at the 6 TB/s that the L2 takes in of
whole sectors. It is 80 % busy (lts__throughput), the SM's pipes 27 (sm__throughput); in the optimized side 9 and 69. The L2's other 2 ms
would be spills that miss the L1, where a block's 195 KB of them lie: that was not counted.

What stops the optimized side at 75 % of its ceiling: registers leave room for two blocks an SM (launch__occupancy_limit_registers), and for
every 8 rows of x and g all of a block's warps load, meet, multiply and meet again. Its pipes are 69 % busy, cuBLAS's 87 (sm__throughput).

No side moves the 201 MB that are declared: x and g are 134 MB, more than the L2 of 60 MB, and each block reads all of its 4096 rows, so
that some are fetched again: 399 MB in the optimized side, 577 in cuBLAS (dram__bytes.sum), at 2 to 5 % of what memory can do.
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
