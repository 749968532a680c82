"""Optimized: Helion: loads and schedule are configuration too, not code."""
# guess: 1.15x, descriptors and a program per SM, which triton_persistent's optimized side has by hand
# proves: kernel _helion_matmul
# proves: grid < 0.1 x baseline
# proves: tma_load_tile

import helion
import helion.language as hl
import torch

# By hand, after the fastest tile of triton_persistent. No search chose it: tune_helion.py searches and prints what belongs here.
CONFIGURATION = helion.Config(
    block_sizes=[128, 256, 64],
    indexing="tensor_descriptor",
    pid_type="persistent_interleaved",
    range_flattens=[True, None],
    l2_groupings=[8],
    num_warps=8,
    num_stages=3,
)


@helion.kernel(config=CONFIGURATION)
def matmul(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    m, k = a.size()
    n = b.size(0)
    for rows, cols in hl.tile([m, n]):
        sums = hl.zeros([rows, cols], dtype=torch.float32)
        for at in hl.tile(k):
            sums = torch.addmm(sums, a[rows, at], b[cols, at].T)
        c[rows, cols] = sums.to(torch.bfloat16)
    return c


def prepare(a, b):
    c = torch.empty(a.shape[0], b.shape[0], dtype=a.dtype, device=a.device)
    multiply = matmul.bind((a, b, c))  # generates the Triton code of these shapes

    return lambda: multiply(a, b, c)
