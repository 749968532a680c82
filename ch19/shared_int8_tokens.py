"""Tokens in INT8: how they are rounded, and what tells which of them lose by it."""

import torch
import triton
import triton.language as tl


def channels(w):
    """Rows of w in INT8, and the float32 scale that maps each row's largest element to 127."""
    scale = w.abs().amax(1, keepdim=True).float().clamp(min=1e-12) / 127
    return (w / scale).round().to(torch.int8), scale


@triton.jit
def quantize(x, codes, scales, peaks, K: tl.constexpr, BLOCK: tl.constexpr):
    """Token program_id(0) in INT8, its scale, and the square of its largest value over its mean square."""
    token, lane = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    value = tl.load(x + token * K + lane, mask=lane < K, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(value), 0), 1e-12)
    tl.store(codes + token * K + lane, tl.floor(value / largest * 127 + 0.5).to(tl.int8), mask=lane < K)
    tl.store(scales + token, largest / 127)
    tl.store(peaks + token, largest * largest * K / (tl.sum(value * value, 0) + 1e-30))
