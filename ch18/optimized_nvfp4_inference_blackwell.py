"""Blackwell's tensor cores multiply NVFP4 as it is stored."""
# needs: tcgen05
# instead: ch18:nvfp4_inference
# guess: 1.3x, 8 TB/s and 2 us a kernel: 352 MB and 6 kernels take 56 us, 99 MB and some 16, of which 10 quantize the token twice, 44 us
# proves: tcgen05_mma_nvfp4

import torch
import triton
import triton.language as tl
from shared_nvfp4 import mlp, quantized

ROWS, TOKENS, DEPTH = 128, 16, 256  # of a tile; one of the 16 tokens is real

quantized_at_once = torch.compile(quantized, dynamic=False)  # a few kernels for a token, where PyTorch's operators are 25


@triton.jit
def nvfp4_product(w, w_scales, x, x_scales, w_factor, x_factor, y, rows, k, ROWS: tl.constexpr, TOKENS: tl.constexpr, DEPTH: tl.constexpr):
    """y = w x for one token: bytes [rows, k / 2] and [1, k / 2], scales [rows, k / 16] and [1, k / 16]."""
    row, token = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, TOKENS)
    some, one = (row < rows)[:, None], (token < 1)[:, None]
    sums = tl.zeros((ROWS, TOKENS), tl.float32)
    for at in range(0, k, DEPTH):
        byte, block = at // 2 + tl.arange(0, DEPTH // 2)[None, :], at // 16 + tl.arange(0, DEPTH // 16)[None, :]
        left = tl.load(w + row.to(tl.int64)[:, None] * (k // 2) + byte, mask=some & (byte < k // 2), other=0)
        left_scale = tl.load(w_scales + row.to(tl.int64)[:, None] * (k // 16) + block, mask=some & (block < k // 16), other=0.0)
        right = tl.load(x + byte + token[:, None] * 0, mask=one & (byte < k // 2), other=0)
        right_scale = tl.load(x_scales + block + token[:, None] * 0, mask=one & (block < k // 16), other=0.0)
        sums = tl.dot_scaled(left, left_scale, "e2m1", right.T, right_scale, "e2m1", sums)
    answer = tl.sum(sums, 1) * tl.load(w_factor) * tl.load(x_factor)  # the other tokens are zeros
    tl.store(y + row, answer.to(y.dtype.element_ty), mask=row < rows)


def linear(w):
    """A function from [1, k] to [1, rows] for weights `w`, [rows, k]; the token is quantized, too."""
    (rows, k), held = w.shape, quantized(w)

    def multiply(x):
        y, token = x.new_empty(1, rows), (quantized_at_once if x.is_cuda else quantized)(x)
        grid, sizes = (triton.cdiv(rows, ROWS),), {"ROWS": ROWS, "TOKENS": TOKENS, "DEPTH": DEPTH}
        nvfp4_product[grid](*held[:2], *token[:2], held.factor, token.factor, y, rows, k, **sizes, num_warps=4, num_stages=3)
        return y

    return multiply


def prepare(x, norm, gate_up, down):
    products = linear(gate_up), linear(down)
    return lambda: mlp(x, norm, *products)
