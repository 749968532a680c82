"""Blocks of BF16 values as e4m3 values with an FP32 scale each: kernels that read every value once."""

import torch
import triton
import triton.language as tl

BLOCK = 256  # values that share a scale
ROWS = tl.constexpr(8)  # blocks a program
COLS = tl.constexpr(BLOCK)


@triton.jit
def _quantize(x, values, scales, blocks):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    at = row * COLS + tl.arange(0, COLS)[None, :]
    tile = tl.load(x + at, mask=row < blocks, other=0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(tile), axis=1, keep_dims=True), 1e-30) / 448.0  # the largest of e4m3
    tl.store(values + at, (tile / scale).to(tl.float8e4nv), mask=row < blocks)
    tl.store(scales + row, scale, mask=row < blocks)


@triton.jit
def _add(values, scales, y, blocks, terms):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    at = row * COLS + tl.arange(0, COLS)[None, :]
    total = tl.zeros((ROWS, COLS), tl.float32)
    for term in range(terms):
        scale = tl.load(scales + term * blocks + row, mask=row < blocks, other=0)
        total += scale * tl.load(values + term * blocks * COLS + at, mask=row < blocks).to(tl.float32)
    tl.store(y + at, total.to(tl.bfloat16), mask=row < blocks)


def quantized(x):
    """The e4m3 values of `x`, blocks x BLOCK, and their scales, blocks x 1."""
    blocks = x.numel() // BLOCK
    values = torch.empty(blocks, BLOCK, dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty(blocks, 1, device=x.device)
    _quantize[(triton.cdiv(blocks, ROWS.value),)](x, values, scales, blocks)
    return values, scales


def added(values, scales, terms=1):
    """The BF16 sum of `terms` tensors that lie one behind the other, added up in FP32; of one, its values."""
    blocks = values.shape[0] // terms
    y = torch.empty(blocks * BLOCK, dtype=torch.bfloat16, device=values.device)
    _add[(triton.cdiv(blocks, ROWS.value),)](values, scales, y, blocks, terms)
    return y
