"""RMSNorm, quantization of each row to e4m3, and the product with an e4m3 matrix, in one kernel: for few rows."""

import triton
import triton.language as tl
from shared_mixed_steps import EPS

from common.models.e4m3 import quantized

ROWS, COLS, DEPTH = 16, 64, 128  # of x, outputs and inputs of a tile; 16 is the least that tensor cores take


@triton.jit
def norm_product(x, norm, w, w_scale, y, rows, n, k, eps, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr):
    """Each program finds the norms and scales of its rows itself: x is small, and lies in the L2 while the weights stream."""
    row, col = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.program_id(0) * COLS + tl.arange(0, COLS)
    square, most = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        value = tl.load(x + row[:, None] * k + depth[None, :], mask=(row < rows)[:, None] & (depth < k)[None, :], other=0.0).to(tl.float32)
        square += tl.sum(value * value, 1)
        most = tl.maximum(most, tl.max(tl.abs(value * tl.load(norm + depth, mask=depth < k, other=0.0)[None, :]), 1))
    root = tl.rsqrt(square / k + eps)
    scale = tl.maximum(most * root, 1e-12) / 448.0  # the largest e4m3
    factor, sums = root / scale, tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        value = tl.load(x + row[:, None] * k + depth[None, :], mask=(row < rows)[:, None] & (depth < k)[None, :], other=0.0).to(tl.float32)
        value = value * tl.load(norm + depth, mask=depth < k, other=0.0)[None, :] * factor[:, None]
        tile = tl.load(w + col[None, :].to(tl.int64) * k + depth[:, None], mask=(col < n)[None, :] & (depth < k)[:, None], other=0.0)
        sums = tl.dot(value.to(tl.float8e4nv), tile, sums)
    sums *= scale[:, None] * tl.load(w_scale + col, mask=col < n, other=0.0)[None, :]
    tl.store(y + row[:, None] * n + col[None, :], sums.to(y.dtype.element_ty), mask=(row < rows)[:, None] & (col < n)[None, :])


def product_of(norm, weight):
    """A function of x [rows, k] and y [rows, n], which it fills; the weight is quantized now."""
    (n, k), (w, scale) = weight.shape, quantized(weight)

    def multiply(x, y):
        grid = (triton.cdiv(n, COLS), triton.cdiv(len(x), ROWS))
        norm_product[grid](x, norm, w, scale, y, len(x), n, k, EPS, ROWS=ROWS, COLS=COLS, DEPTH=DEPTH, num_warps=4, num_stages=4)

    return multiply
