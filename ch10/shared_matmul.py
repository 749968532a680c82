"""Product of two bf16 matrices with sums in fp32, rounded to bf16: c[i, j] = sum over l of a[i, l] * b[j, l], rows of whole 16 bytes."""

import torch

from common import Spec, Workload


def inputs(rand, m, n, k):
    """The matrices: sums of k products are of unit scale."""
    return {"a": rand.normal(m, k, dtype=torch.bfloat16), "b": rand.normal(n, k, std=k**-0.5, dtype=torch.bfloat16)}


def work(m, n, k):
    """A multiplication and an addition a product; each matrix once through DRAM."""
    return {"bf16": 2 * m * n * k, "dram_read": 2 * (m * k + n * k), "dram_write": 2 * m * n}


MATMUL = Workload(
    inputs=inputs,
    outputs=lambda m, n, k: {"c": Spec((m, n), torch.bfloat16)},
    reference=lambda a, b: a @ b.T,
    time_at={
        "deep": {"m": 8192, "n": 8192, "k": 8192},
        "shallow": {"m": 8192, "n": 8192, "k": 1024},  # a tile is drained every 16 steps, not every 128
    },
    check_at=(
        {"m": 1, "n": 8, "k": 8},  # one row, one chunk: all but a 256th of the tiles is outside
        {"m": 128, "n": 256, "k": 64},  # whole tiles of either kind, one step
        {"m": 129, "n": 264, "k": 72},  # a row, a chunk and a chunk more
        {"m": 257, "n": 136, "k": 1000},
        {"m": 2305, "n": 4104, "k": 200},  # three tiles and more a block, so accumulators and stages are used again; half a ring a tile
    ),
    work=work,
    rtol=2.0**-8,  # half of what separates two bf16
    # Sums that are cut off, not rounded, after every 16 of 8192 products are off by at most 5.3e-5 of 65 536 (simulated); times 4.
    atol=2e-4,
)


def prepare(a, b):
    """PyTorch's answer, which is cuBLAS's."""
    c = torch.empty(a.shape[0], b.shape[0], dtype=a.dtype, device=a.device)
    return lambda: torch.mm(a, b.T, out=c)
