"""Gradient of a linear layer's weight: w[r, c] = sum over t of x[t, r] * g[t, c], in float32."""

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
