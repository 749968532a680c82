"""The matrix product with tiles loaded by tensor descriptors, so by the TMA; a program a tile, or a program an SM."""

import torch
import triton
import triton.language as tl
from shared_tiles import tile_of, tiles_in
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def descriptor_matmul(from_a, from_b, to, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    """Tiles by tensor descriptors, so by the TMA. A program computes every `num_programs`-th tile: one each, where there are as many."""
    tile_rows, tile_cols = tl.cdiv(m, ROWS), tl.cdiv(n, COLS)
    for index in tl.range(tl.program_id(0), tile_rows * tile_cols, tl.num_programs(0), flatten=True):
        row, col = tile_of(index, tile_rows, tile_cols, GROUP)
        sums = tl.zeros((ROWS, COLS), tl.float32)
        for at in range(0, k, DEPTH):
            sums = tl.dot(from_a.load([row * ROWS, at]), from_b.load([col * COLS, at]).T, sums)
        to.store([row * ROWS, col * COLS], sums.to(tl.bfloat16))


def by_descriptors(a, b, tile, programs=None):
    """A step that launches `descriptor_matmul` with `programs` programs, or one a tile, and returns c."""
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    from_a = TensorDescriptor.from_tensor(a, [tile.rows, tile.depth])
    from_b = TensorDescriptor.from_tensor(b, [tile.cols, tile.depth])
    to = TensorDescriptor.from_tensor(c, [tile.rows, tile.cols])
    tiles = tiles_in(m, n, tile)
    grid = (min(programs or tiles, tiles),)

    def step():
        descriptor_matmul[grid](from_a, from_b, to, m, n, k, **tile.options())
        return c

    return step
