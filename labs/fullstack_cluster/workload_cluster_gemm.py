"""Product of two bf16 matrices with sums in fp32, rounded to bf16: c[i, j] = sum over l of a[i, l] * b[j, l], rows of whole 16 bytes."""
# needs: wgmma, tma, clusters

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, m, n, k: {"a": rand.normal(m, k, dtype=torch.bfloat16), "b": rand.normal(n, k, std=k**-0.5, dtype=torch.bfloat16)},
    outputs=lambda m, n, k: {"c": Spec((m, n), torch.bfloat16)},
    reference=lambda a, b: a @ b.T,
    time_at={  # 480 tiles, 120 clusters: four waves on 132 SMs, and four where clusters fill 120 of them
        "split lines": {"m": 2560, "n": 6144, "k": 4072},  # rows of 8144 bytes begin inside a line of 128
        "whole lines": {"m": 2560, "n": 6144, "k": 4096},
    },
    check_at=(
        {"m": 1, "n": 8, "k": 8},  # one row, one chunk: three of the cluster's four tiles are outside
        {"m": 128, "n": 256, "k": 64},  # one whole tile, one step
        {"m": 129, "n": 264, "k": 72},  # a row, a chunk and a chunk more: all four tiles of a cluster
        {"m": 257, "n": 136, "k": 1000},
        {"m": 4609, "n": 4104, "k": 200},  # five clusters and more: stages are used again
    ),
    work=lambda m, n, k: {"bf16": 2 * m * n * k, "dram_read": 2 * (m * k + n * k), "dram_write": 2 * m * n},
    rtol=2.0**-8,  # half of what separates two bf16
    atol=2e-4,  # sums cut off, not rounded, after every 16 of 4096 products
)
