"""FP8 (e4m3) with one scale a tensor: what a scale is, and a stack of linear layers with ReLU in it."""

import torch
import torch.nn.functional as F

LARGEST = 448.0  # of e4m3


def scale_of(values):
    """The scale that maps the largest of `values` to e4m3's largest: a scalar in float32."""
    return torch.linalg.vector_norm(values, torch.inf, dtype=torch.float32) / LARGEST


def quantized(values, scale):
    """`values` by their scale in e4m3; what is beyond its range becomes the largest, not NaN."""
    return (values / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)


def scaled(values):
    """`values` in e4m3 by their own scale, and that scale."""
    scale = scale_of(values)
    return quantized(values, scale), scale


def packed(weights):
    """Each of `weights` in e4m3, and its scale."""
    return [scaled(w) for w in weights]


def linear(values, scale, w, scale_w):
    """relu(x w^T) in BF16, of x and w in e4m3."""
    return torch._scaled_mm(values, w.T, scale, scale_w, out_dtype=torch.bfloat16, use_fast_accum=True).relu_()


def stack(x, layers, scaled_at):
    """The stack's answer, scaled to a mean square of 1 a token; `scaled_at(i, x)` is what layer i gets in e4m3, and its scale."""
    for i, (w, scale_w) in enumerate(layers):
        x = linear(*scaled_at(i, x), w, scale_w)
    return F.rms_norm(x, x.shape[1:])
