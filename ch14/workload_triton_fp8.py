"""A linear layer: bf16 activations times bf16 weights, c = a b^T, as it is, or with both quantized to FP8 by rows.

The weights `b` do not change, so they are quantized before; the activations `a` are quantized in every step, and that time counts.
"""
# needs: tma, fp8

import dataclasses

from workload_triton_persistent import WORKLOAD as MATMUL

from common import Precision

# Rounding to e4m3 moves an operand by at most 1/16 of itself, 0.026 of it in the root mean square, so a sum of unit scale moves by
# 0.037: of 67 million sums the furthest by 0.22, measured on an H100.
WORKLOAD = dataclasses.replace(
    MATMUL,
    constants=("b",),
    # The fastest unit whose precision `changes` admits; `a` is read as bf16, and `b` at least as e4m3.
    work=lambda m, n, k: {"fp8": 2 * m * n * k, "dram_read": 2 * m * k + n * k, "dram_write": 2 * m * n},
    changes=Precision(rtol=2.0**-5, atol=0.28),
    changed_by=("optimized", "library"),
    check_at=(
        {"m": 1, "n": 16, "k": 16},  # one row, one chunk of 16 bytes of e4m3, which is what torch._scaled_mm takes
        {"m": 128, "n": 256, "k": 128},  # one whole tile, one K-step
        {"m": 129, "n": 272, "k": 144},
        {"m": 257, "n": 528, "k": 400},
    ),
)
