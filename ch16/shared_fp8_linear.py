"""Linear layers in e4m3: a scale for each output channel of a weight, found once, and one for each token, found in every call."""

import torch

LARGEST = 448.0  # of e4m3


def quantized(x):
    """Rows in e4m3, and the scale of each: [rows, 1] in float32."""
    scale = x.abs().amax(1, keepdim=True).float().clamp(min=1e-12) / LARGEST
    return (x / scale).to(torch.float8_e4m3fn), scale


def packed(layer):
    """A layer's weights with its matrices quantized."""
    return {name: quantized(w) if w.dim() == 2 else w for name, w in layer.items()}


def linear(x, w):
    """x times the transpose of a quantized weight, in x's dtype."""
    x8, scale = quantized(x)
    return torch._scaled_mm(x8, w[0].T, scale, w[1].T, out_dtype=x.dtype, use_fast_accum=True)
