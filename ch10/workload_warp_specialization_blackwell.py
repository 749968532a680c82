"""Product of two fp16 matrices, tile after tile in blocks that stay: c[i, j] = sum over l of a[i, l] * b[j, l], rows of whole 16 bytes."""
# needs: tcgen05, tma
# instead: ch10:warp_specialization_producer_consumer

import torch

from common import Spec, Workload


def inputs(rand, m, n, k):
    a = rand.normal(m, k, dtype=torch.float16)
    return {"a": a, "b": rand.normal(n, k, dtype=torch.float16, std=k**-0.5)}  # products of unit scale


def work(m, n, k):
    return {"fp16": 2 * m * n * k, "dram_read": 2 * (m * k + n * k), "dram_write": 2 * m * n}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda m, n, k: {"c": Spec((m, n), torch.float16)},
    reference=lambda a, b: a @ b.T,
    time_at={
        "shallow": {"m": 8192, "n": 8192, "k": 1024},  # a tile is drained every 16 steps
        "deep": {"m": 8192, "n": 8192, "k": 8192},  # every 128
    },
    check_at=(
        {"m": 1, "n": 8, "k": 8},  # one row, one chunk: all but a 4096th of the tile is outside
        {"m": 128, "n": 256, "k": 64},  # a whole tile, one step
        {"m": 129, "n": 264, "k": 72},  # a row, a chunk and a chunk more
        {"m": 2305, "n": 4104, "k": 200},  # 323 tiles, so blocks take a second and a third, and 4 steps in a ring of 3 stages
    ),
    work=work,
    rtol=2.0**-11,  # half of what separates two fp16
    # Sums that are cut off, not rounded, after every 16 of 8192 products are off by at most 5.3e-5 of 65 536 (simulated); times 4.
    atol=2e-4,
)
