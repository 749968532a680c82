"""Baseline: each thread computes the addresses of the 16 bytes that it loads, and a bound for each."""

import torch
import triton
import triton.language as tl
from shared_tiles import Tile, multiprocessors, tile_of, tiles_in

TILE = Tile(rows=256, cols=128, depth=64, warps=8, stages=3)


@triton.jit
def pointer_matmul(a, b, c, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    tile_rows, tile_cols = tl.cdiv(m, ROWS), tl.cdiv(n, COLS)
    depth = tl.arange(0, DEPTH)
    for index in tl.range(tl.program_id(0), tile_rows * tile_cols, tl.num_programs(0), flatten=True):
        row, col = tile_of(index, tile_rows, tile_cols, GROUP)
        rows = row * ROWS + tl.arange(0, ROWS)
        cols = col * COLS + tl.arange(0, COLS)
        sums = tl.zeros((ROWS, COLS), tl.float32)
        for at in range(0, k, DEPTH):
            inside = depth < k - at
            x = tl.load(a + (rows % m)[:, None].to(tl.int64) * k + (at + depth)[None, :], mask=inside[None, :], other=0.0)
            y = tl.load(b + (cols % n)[None, :].to(tl.int64) * k + (at + depth)[:, None], mask=inside[:, None], other=0.0)
            sums = tl.dot(x, y, sums)
        to = c + rows[:, None].to(tl.int64) * n + cols[None, :]
        tl.store(to, sums.to(tl.bfloat16), mask=(rows < m)[:, None] & (cols < n)[None, :])


def prepare(a, b):
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    grid = (min(multiprocessors(a.device), tiles_in(m, n, TILE)),)

    def step():
        pointer_matmul[grid](a, b, c, m, n, k, **TILE.options())
        return c

    return step
