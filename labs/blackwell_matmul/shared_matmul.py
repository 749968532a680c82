"""Product of two bf16 matrices with sums in fp32, rounded to bf16: c[i, j] = sum over l of a[i, l] * b[j, l], rows of whole 16 bytes."""

import torch

from common import Spec, Workload

REMAINDER = {"m": 4000, "n": 4104, "k": 4072, "clusterDim": 2}  # 272 pairs of tiles: 8 of 66 clusters have a fifth


def matmul(ladder=(), m=4096, n=4096, k=4096, remainder=False):
    """The workload, timed at m x n x k, and with `remainder` at that shape too. Blocks of a cluster are `clusterDim`: 1, 2, 4 or 8."""
    timed = {"m": m, "n": n, "k": k, "clusterDim": 2}

    def inputs(rand, m, n, k, clusterDim):
        return {"a": rand.normal(m, k, dtype=torch.bfloat16), "b": rand.normal(n, k, std=k**-0.5, dtype=torch.bfloat16)}

    return Workload(
        inputs=inputs,
        outputs=lambda m, n, k, clusterDim: {"c": Spec((m, n), torch.bfloat16)},
        reference=lambda a, b: a @ b.T,
        time_at={"whole": timed, "remainder": REMAINDER} if remainder else timed,
        check_at=(
            {"m": 1, "n": 8, "k": 8, "clusterDim": 2},  # one row, one chunk: nearly all of the tiles is outside
            {"m": 128, "n": 256, "k": 64, "clusterDim": 1},  # one whole tile, one step
            {"m": 129, "n": 264, "k": 72, "clusterDim": 4},  # a row, a chunk and a chunk more
            {"m": 257, "n": 136, "k": 1000, "clusterDim": 8},
            {"m": 2305, "n": 4104, "k": 200, "clusterDim": 2},  # three tiles and more a block: stages are used again
        ),
        work=lambda m, n, k, clusterDim: {"bf16": 2 * m * n * k, "dram_read": 2 * (m * k + n * k), "dram_write": 2 * m * n},
        ladder=ladder,
        rtol=2.0**-8,  # half of what separates two bf16
        atol=2e-4,  # sums cut off, not rounded, after every 16 of 8192 products: four times the simulated error
    )


def prepare(a, b):
    """PyTorch's answer, which is cuBLAS's."""
    c = torch.empty(a.shape[0], b.shape[0], dtype=a.dtype, device=a.device)
    return lambda: torch.mm(a, b.T, out=c)
