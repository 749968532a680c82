"""Optimized: FP8 linear layers, forward and backward."""
# predicts: baseline 15.7 ms = layers * 4 * tokens * (1.214e9 / bf16 + 7 * tokens * width / 300e12 + 861e3 / dram_copy)  (see page)
# predicts: optimized 10.8 ms = layers * (4 * tokens * (1.214e9 / fp8 + 7 * tokens * width / 3e14 + 1.33e6 / dram_copy) + 1.2e9 / dram_copy)
# proves: kernel cast_both

import torch
from shared_decoder_block import gradients, leaves_of
from shared_fp8_cast import cast

from common.graph import captured

E4M3 = torch.float8_e4m3fn  # for gradients, too, as DeepSeek-V3 has it (arXiv:2412.19437); e5m2 has more range and less precision


def product(a, scale_a, b, scale_b, fast=False):
    """a b^T in BF16; a and b are FP8 with rows along the dimension that is summed, as Hopper's FP8 products need them.

    `fast` adds up in the tensor cores alone, in fewer bits: torchao and Transformer Engine do so forward, and not for gradients.
    """
    return torch._scaled_mm(a, b.T, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast)


class Fp8Linear(torch.autograd.Function):
    """x w^T, and its two gradients: each of the three products reads both operands in FP8."""

    @staticmethod
    def forward(ctx, x, w):
        flat = x.flatten(0, -2)
        (x8, x8_t, x_scale), (w8, w8_t, w_scale) = cast(flat, E4M3), cast(w, E4M3)
        ctx.save_for_backward(x8_t, x_scale, w8_t, w_scale)
        return product(x8, x_scale, w8, w_scale, fast=True).view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx, dy):
        x8_t, x_scale, w8_t, w_scale = ctx.saved_tensors
        dy8, dy8_t, dy_scale = cast(dy.flatten(0, -2).contiguous(), E4M3)
        dx = product(dy8, dy_scale, w8_t, w_scale).view(*dy.shape[:-1], -1)
        return dx, product(dy8_t, dy_scale, x8_t, x_scale)


def prepare(x, weights, heads, loss_scale):
    leaves = leaves_of(weights)
    return captured(lambda: gradients(x, leaves, heads, loss_scale, Fp8Linear.apply))
