"""Library: torch._scaled_mm with scales by rows, which is cuBLAS's or CUTLASS's product, behind a quantization in eager PyTorch."""

import torch


def quantized(x):
    scale = x.abs().amax(1, keepdim=True).float().clamp(min=1e-12) / 448
    return (x / scale).to(torch.float8_e4m3fn), scale


def prepare(a, b):
    b8, b_scale = quantized(b)

    def step():
        a8, a_scale = quantized(a)
        return torch._scaled_mm(a8, b8.T, scale_a=a_scale, scale_b=b_scale.T, out_dtype=a.dtype, use_fast_accum=True)

    return step
