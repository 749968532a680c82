"""Optimized: the TMA loads whole tiles by descriptor: one thread issues a copy where each thread computed 16-byte addresses."""
import torch
import triton
import triton.language as tl
from shared_triton_matmul import Tile, tile_of

TILE = Tile(rows=128, cols=256, depth=64, warps=8, stages=4)


@triton.jit
def descriptor_matmul(a, b, c, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    row, col = tile_of(tl.program_id(0), tl.cdiv(m, ROWS), tl.cdiv(n, COLS), GROUP)
    from_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [ROWS, DEPTH])
    from_b = tl.make_tensor_descriptor(b, [n, k], [k, 1], [COLS, DEPTH])
    to = tl.make_tensor_descriptor(c, [m, n], [n, 1], [ROWS, COLS])
    sums = tl.zeros((ROWS, COLS), tl.float32)
    for at in tl.range(0, k, DEPTH):
        sums = tl.dot(from_a.load([row * ROWS, at]), from_b.load([col * COLS, at]).T, sums)
    to.store([row * ROWS, col * COLS], sums.to(tl.bfloat16))


def launch(a, b, c, tile):
    (m, k), n = a.shape, b.shape[0]
    grid = (triton.cdiv(m, tile.rows) * triton.cdiv(n, tile.cols),)
    descriptor_matmul[grid](
        a, b, c, m, n, k, ROWS=tile.rows, COLS=tile.cols, DEPTH=tile.depth, GROUP=8, num_warps=tile.warps, num_stages=tile.stages
    )
