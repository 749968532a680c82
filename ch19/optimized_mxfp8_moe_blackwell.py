"""Blackwell's tensor cores multiply MXFP8 with its scales."""
# needs: tcgen05
# instead: ch19:mxfp8_moe
# guess: 1.4x, at 8 TB/s and 80 % of 2.25 PFLOP/s BF16 takes 25 and 458 us; here 60 % of twice that rate, and 46 us to quantize
# proves: kernel mxfp8_grouped
# has: tcgen05_mma_block_scaled

from functools import partial

import torch
import triton
import triton.language as tl
from torch.nn.functional import silu

from common.block_formats import mxfp8

ROWS, COLS, DEPTH = 128, 256, 128  # of a tile; with its scales it fills tensor memory


@triton.jit
def mxfp8_grouped(x, x_scales, w, w_scales, ends, y, cols, k, blocks, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr):
    """y = x w[expert]^T for the rows of expert program_id(0): e4m3 [rows, k] and [experts, cols, k], E8M0 for `blocks` of 32."""
    expert = tl.program_id(0)
    start = tl.load(ends + tl.maximum(expert - 1, 0)) * (expert > 0)
    row = start + tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    end = tl.load(ends + expert)
    if start + tl.program_id(1) * ROWS < end:
        col = tl.program_id(2) * COLS + tl.arange(0, COLS)
        w_row = expert.to(tl.int64) * cols + col
        some, known = (row < end)[:, None], (col < cols)[:, None]
        sums = tl.zeros((ROWS, COLS), tl.float32)
        for at in range(0, k, DEPTH):
            inner, block = at + tl.arange(0, DEPTH)[None, :], at // 32 + tl.arange(0, DEPTH // 32)[None, :]
            left = tl.load(x + row.to(tl.int64)[:, None] * k + inner, mask=some & (inner < k), other=0.0)
            left_scale = tl.load(x_scales + row.to(tl.int64)[:, None] * blocks + block, mask=some & (block < blocks), other=0)
            right = tl.load(w + w_row[:, None] * k + inner, mask=known & (inner < k), other=0.0)
            right_scale = tl.load(w_scales + w_row[:, None] * blocks + block, mask=known & (block < blocks), other=0)
            sums = tl.dot_scaled(left, left_scale, "e4m3", right.T, right_scale, "e4m3", sums)
        tl.store(y + row.to(tl.int64)[:, None] * cols + col[None, :], sums.to(y.dtype.element_ty), mask=some & (col < cols)[None, :])


def product(x, held, ends):
    """[rows, cols] for x, MXFP8 values and scales of [rows, k], and `held`, those of weights [experts, cols, k]."""
    (values, scales), (count, cols, k) = x, held[0].shape
    y = values.new_empty(len(values), cols, dtype=torch.bfloat16)
    grid = (count, triton.cdiv(len(values), ROWS), triton.cdiv(cols, COLS))  # an expert may have all rows; tiles beyond its end stop
    mxfp8_grouped[grid](values, scales, *held, ends, y, cols, k, k // 32, ROWS=ROWS, COLS=COLS, DEPTH=DEPTH, num_warps=8, num_stages=4)
    return y


def gated(both):
    """silu(gate) * up for `both`, [rows, 2 * inner], in MXFP8."""
    gate, up = both.chunk(2, dim=-1)
    return mxfp8(silu(gate) * up, up=True)


def prepare(x, gate_up, down, ends):
    gate_up, down = mxfp8(gate_up, up=True), mxfp8(down, up=True)
    first, second = (torch.compile(each, dynamic=False) for each in (partial(mxfp8, up=True), gated))  # eager: some 30 kernels each
    return lambda: product(second(product(first(x), gate_up, ends)), down, ends)
