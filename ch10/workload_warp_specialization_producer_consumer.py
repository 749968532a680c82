"""A linear layer with int8 weights: y[i, j] = scale[i] * sum over l of w[i, l] * x[j, l], fp16 in and out, rows of whole 16 bytes.

Predicted: cycles per K-step, 1444 in the baseline and 1024 in the optimized side, and a guess of how far the clock falls.

Measured: RESULTS.md. The ratio is as predicted, the cycles are not.

Why: an SM makes 8 tiles of 128 K-steps. At the clock of the sides' time stamps, 1.79 GHz and 1.68 GHz, a K-step takes 1980 cycles in the
baseline and 1440 in the optimized side (H200). The tensor cores are active in 52 % and 72 % of cycles
(sm__pipe_tensor_cycles_active), which are the 1024 cycles of products. So also with roles, 416 cycles per K-step are something else.
Which role they belong to is open.
"""
# needs: tma
# traffic: w, x and y are 67 MB each, and the L2 holds 60 MB: w and x are read 4.7 times

import math

import torch

from common import Spec, Workload

WIDEST = 127  # of a weight, either way


def inputs(rand, n, m, k):
    spread = WIDEST / math.sqrt(3)  # of integers uniform in -127 .. 127
    return {
        "w": rand.integers(n, k, low=-WIDEST, high=WIDEST + 1, dtype=torch.int8),
        "scale": rand.uniform(n, low=0.5 / spread, high=1.5 / spread),
        "x": rand.normal(m, k, dtype=torch.float16, std=k**-0.5),  # outputs are of unit scale
    }


def work(n, m, k):
    """A multiplication and an addition a product; each matrix once through DRAM, the weights a byte each."""
    return {"fp16": 2 * n * m * k, "dram_read": n * k + 4 * n + 2 * m * k, "dram_write": 2 * n * m}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda n, m, k: {"y": Spec((n, m), torch.float16)},
    reference=lambda w, scale, x: scale[:, None] * (w.to(x.dtype) @ x.T),
    time_at={"n": 8192, "m": 4096, "k": 8192},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"n": 1, "m": 8, "k": 16},  # one row, one chunk: all but a 4096th of the tile is outside
        {"n": 128, "m": 256, "k": 64},  # a whole tile, one step
        {"n": 129, "m": 264, "k": 80},  # a row, a chunk and a chunk more
        {"n": 200, "m": 40, "k": 336},  # once around a ring of four stages, a step and a quarter more
    ),
    work=work,
    rtol=2.0**-10,  # two roundings to fp16, the library's: of the sum, and of the scaled sum
    # Sums that are cut off, not rounded, after every 16 of 8192 products are off by at most 8.8e-5 of 220 000 (simulated); times 2.3.
    atol=2e-4,
)
