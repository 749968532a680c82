"""The matrix product with tiles loaded by pointers, one program a tile: what triton_matmul's sides and triton_tma's baseline launch."""

import torch
import triton
import triton.language as tl
from shared_tiles import tile_of, tiles_in


@triton.jit
def pointer_matmul(a, b, c, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    """Every thread computes the addresses of the 16 bytes that it loads."""
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


def by_pointers(a, b, tile):
    """A step that launches `pointer_matmul` and returns c."""
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    grid = (tiles_in(m, n, tile),)

    def step():
        pointer_matmul[grid](a, b, c, m, n, k, **tile.options())
        return c

    return step
