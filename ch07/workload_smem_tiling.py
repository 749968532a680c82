"""Multiply float32 matrices: c[i, j] = sum over p of a[i, p] b[p, j], for a of m x k and b of k x n."""

import torch

from common import Spec, Workload


def work(m, n, k):
    return {"fp32": 2 * m * n * k, "dram_read": 4 * (m * k + k * n), "dram_write": 4 * m * n}


WORKLOAD = Workload(
    inputs=lambda rand, m, n, k: {"a": rand.normal(m, k), "b": rand.normal(k, n, std=k**-0.5)},  # products of unit scale
    outputs=lambda m, n, k: {"c": Spec((m, n), torch.float32)},
    reference=lambda a, b: a @ b,
    time_at={"m": 2048, "n": 2048, "k": 2048},
    check_at=(
        {"m": 1, "n": 1, "k": 1},
        {"m": 32, "n": 32, "k": 32},  # one tile of each matrix exactly
        {"m": 33, "n": 65, "k": 31},
        {"m": 50, "n": 40, "k": 130},
    ),
    work=work,
    # Both sides add 2048 products in the same order: emulated, the worst of 4 million sums is off by 1.1e-5.
    rtol=0.0,
    atol=1.5e-5,
)
