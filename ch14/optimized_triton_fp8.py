"""Optimized: e4m3 operands: twice the products per cycle."""
# predicts: baseline 1.39 ms = 2 * 8192**3 / bf16
# predicts: optimized 0.753 ms = 2 * 8192**3 / fp8 + 3 * 8192**2 / dram_copy    (products; the activations read as bf16, written as e4m3)
# proves: wgmma_fp8
# proves: kernel quantize_rows

import torch
import triton
import triton.language as tl
from shared_fp8_rows import quantized
from shared_tiles import Tile, multiprocessors, tile_of, tiles_in
from triton.tools.tensor_descriptor import TensorDescriptor

TILE = Tile(rows=128, cols=256, depth=128, warps=8, stages=3)  # the fastest of four tiles tried on an H100


@triton.jit
def scaled_matmul(
    from_a, from_b, a_scale, b_scale, to, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr
):
    tile_rows, tile_cols = tl.cdiv(m, ROWS), tl.cdiv(n, COLS)
    for index in tl.range(tl.program_id(0), tile_rows * tile_cols, tl.num_programs(0), flatten=True):
        row, col = tile_of(index, tile_rows, tile_cols, GROUP)
        sums = tl.zeros((ROWS, COLS), tl.float32)
        for at in range(0, k, DEPTH):
            sums = tl.dot(from_a.load([row * ROWS, at]), from_b.load([col * COLS, at]).T, sums)
        rows = row * ROWS + tl.arange(0, ROWS)
        cols = col * COLS + tl.arange(0, COLS)
        by_row = tl.load(a_scale + rows, mask=rows < m, other=0.0)
        by_col = tl.load(b_scale + cols, mask=cols < n, other=0.0)
        to.store([row * ROWS, col * COLS], (sums * by_row[:, None] * by_col[None, :]).to(tl.bfloat16))


def prepare(a, b):
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    a8, a_scale, quantize_a = quantized(a)
    b8, b_scale, quantize_b = quantized(b)
    quantize_b()
    from_a = TensorDescriptor.from_tensor(a8, [TILE.rows, TILE.depth])
    from_b = TensorDescriptor.from_tensor(b8, [TILE.cols, TILE.depth])
    to = TensorDescriptor.from_tensor(c, [TILE.rows, TILE.cols])
    grid = (min(multiprocessors(a.device), tiles_in(m, n, TILE)),)

    def step():
        quantize_a()
        scaled_matmul[grid](from_a, from_b, a_scale, b_scale, to, m, n, k, **TILE.options())
        return c

    return step
