"""Product of two bf16 matrices, c = a b^T, summed in fp32: the work, PyTorch's answer, and the kernel that loads tiles by pointers."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from common import Spec, Workload


class Tile(NamedTuple):
    """What Triton is told about a tile of c: its rows and columns, the depth of a K-step, warps, and buffers of the software pipeline."""

    rows: int
    cols: int
    depth: int
    warps: int
    stages: int


def workload(check_at):
    """The work of the chapter's matrix products: sums of k products are of unit scale, and each matrix moves once through DRAM."""
    return Workload(
        inputs=lambda rand, m, n, k: {
            "a": rand.normal(m, k, dtype=torch.bfloat16),
            "b": rand.normal(n, k, std=k**-0.5, dtype=torch.bfloat16),
        },
        outputs=lambda m, n, k: {"c": Spec((m, n), torch.bfloat16)},
        reference=lambda a, b: a @ b.T,
        time_at={"m": 8192, "n": 8192, "k": 8192},
        cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
        check_at=check_at,
        work=lambda m, n, k: {"bf16": 2 * m * n * k, "dram_read": 2 * (m * k + n * k), "dram_write": 2 * m * n},
        rtol=2.0**-8,  # half of what separates two bf16
        # Sums that are cut off, not rounded, after every 16 of 8192 products are off by at most 5.3e-5 of 65 536 (simulated); times 4.
        atol=2e-4,
    )


def library(a, b):
    """PyTorch's answer, which is cuBLAS's."""
    c = torch.empty(a.shape[0], b.shape[0], dtype=a.dtype, device=a.device)
    return lambda: torch.mm(a, b.T, out=c)


@triton.jit
def tile_of(index, tile_rows, tile_cols, GROUP: tl.constexpr):
    """Row and column of the `index`-th tile, in bands of GROUP rows of tiles: tiles that run together share operands in the L2."""
    band = index // (GROUP * tile_cols)
    first = band * GROUP
    rows = min(tile_rows - first, GROUP)
    within = index % (GROUP * tile_cols)
    return first + within % rows, within // rows


@triton.jit
def pointer_matmul(a, b, c, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    """One program a tile; every thread computes the addresses that it loads from."""
    row, col = tile_of(tl.program_id(0), tl.cdiv(m, ROWS), tl.cdiv(n, COLS), GROUP)
    rows = row * ROWS + tl.arange(0, ROWS)
    cols = col * COLS + tl.arange(0, COLS)
    depth = tl.arange(0, DEPTH)
    # Rows past the end wrap around: their sums are computed and not stored, so loads need a mask in k alone.
    from_a = a + (rows % m)[:, None].to(tl.int64) * k + depth[None, :]
    from_b = b + (cols % n)[None, :].to(tl.int64) * k + depth[:, None]
    sums = tl.zeros((ROWS, COLS), tl.float32)
    for at in range(0, k, DEPTH):
        inside = depth < k - at
        x = tl.load(from_a + at, mask=inside[None, :], other=0.0)
        y = tl.load(from_b + at, mask=inside[:, None], other=0.0)
        sums = tl.dot(x, y, sums)
    to = c + rows[:, None].to(tl.int64) * n + cols[None, :]
    tl.store(to, sums.to(tl.bfloat16), mask=(rows < m)[:, None] & (cols < n)[None, :])


def launch_pointer_matmul(a, b, c, tile):
    """One launch of `pointer_matmul` with the sizes of `tile`."""
    (m, k), n = a.shape, b.shape[0]
    grid = (triton.cdiv(m, tile.rows) * triton.cdiv(n, tile.cols),)
    pointer_matmul[grid](
        a, b, c, m, n, k, ROWS=tile.rows, COLS=tile.cols, DEPTH=tile.depth, GROUP=8, num_warps=tile.warps, num_stages=tile.stages
    )
