"""A product of few rows, c = a b^T in BF16, summed in fp32, and the configurations that a search may choose from."""

import itertools
from typing import NamedTuple

import torch
import triton
import triton.language as tl


class Launch(NamedTuple):
    """Rows and columns of c per program, elements of k per K-step, warps, and stages: one is multiplied, the others are in flight."""

    rows: int
    cols: int
    depth: int
    warps: int
    stages: int


DEFAULT = Launch(rows=16, cols=128, depth=64, warps=4, stages=3)
LARGEST = 96 << 10  # bytes of shared memory for tiles; every GPU since Ampere has them

SPACE = [
    Launch(16, cols, depth, 4, stages)
    for cols, depth, stages in itertools.product((16, 32, 64, 128), (64, 128, 256), (3, 5))
    if 2 * (16 + cols) * depth * stages <= LARGEST
]


@triton.jit
def skinny(a, b, c, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    depth = tl.arange(0, DEPTH)
    sums = tl.zeros((ROWS, COLS), tl.float32)
    for at in range(0, k, DEPTH):
        inside = depth + at < k
        x = tl.load(a + rows[:, None] * k + depth[None, :] + at, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        y = tl.load(b + cols[None, :] * k + depth[:, None] + at, mask=(cols < n)[None, :] & inside[:, None], other=0.0)
        sums = tl.dot(x, y, sums)
    tl.store(c + rows[:, None] * n + cols[None, :], sums.to(tl.bfloat16), mask=(rows < m)[:, None] & (cols < n)[None, :])


def product(a, b, launch):
    """A step that returns c [m, n] for a [m, k] and b [n, k]."""
    (m, k), n = a.shape, b.shape[0]
    if max(m * k, n * k, m * n) >= 2**31:
        raise ValueError(f"found a product of {m} x {n} x {k}; expected matrices of less than 2**31 elements, as offsets have 32 bits")
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(n, launch.cols), triton.cdiv(m, launch.rows))
    options = {"ROWS": launch.rows, "COLS": launch.cols, "DEPTH": launch.depth}

    def step():
        skinny[grid](a, b, c, m, n, k, **options, num_warps=launch.warps, num_stages=launch.stages)
        return c

    return step
