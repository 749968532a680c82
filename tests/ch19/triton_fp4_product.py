"""A product of 4-bit values whose scales the tensor cores apply: MXFP4 with 32 values a scale in E8M0, NVFP4 with 16 in e4m3."""

import triton
import triton.language as tl


@triton.jit
def fp4_product(x, x_scales, w, w_scales, y, cols, k, SIDE: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """One tile of y = x w^T, [SIDE, SIDE]: e2m1, two values a byte of a row, and a scale for each BLOCK of them."""
    row = tl.arange(0, SIDE)
    sums = tl.zeros((SIDE, SIDE), tl.float32)
    for at in range(0, k, DEPTH):
        byte, block = at // 2 + tl.arange(0, DEPTH // 2)[None, :], at // BLOCK + tl.arange(0, DEPTH // BLOCK)[None, :]
        left, left_scale = tl.load(x + row[:, None] * (k // 2) + byte), tl.load(x_scales + row[:, None] * (k // BLOCK) + block)
        right, right_scale = tl.load(w + row[:, None] * (k // 2) + byte), tl.load(w_scales + row[:, None] * (k // BLOCK) + block)
        sums = tl.dot_scaled(left, left_scale, "e2m1", right.T, right_scale, "e2m1", sums)
    tl.store(y + row[:, None] * cols + row[None, :], sums.to(y.dtype.element_ty))
