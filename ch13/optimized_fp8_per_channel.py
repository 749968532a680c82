"""Optimized: one scale a token and channel: a spike spoils its row alone."""
# predicts: baseline error 0.0861 = ((2**-9 / 12**0.5 * spike / 448)**2 + (2**-4 / 3**0.5)**2 / 2.164)**0.5  (x below e4m3's normal range)
# predicts: optimized error 0.0347 = (2 * (2**-4 / 3**0.5)**2 / 2.164)**0.5  (x and w rounded to 3 bits of mantissa)
# predicts: baseline 0.785 ms = 2 * tokens * k * n / fp8 + (5 * tokens * k + 4 * tokens * n) / dram_copy  (product, quantizing, norm)
# predicts: optimized 0.730 ms = 2 * tokens * k * n / fp8 + (3 * tokens * k + 4 * tokens * n) / dram_copy  (a row is read once)

import torch
import torch.nn.functional as F

LARGEST = 448.0  # of e4m3


def quantized(values):
    scale = values.abs().amax(dim=1, keepdim=True).float() / LARGEST
    return (values / scale).to(torch.float8_e4m3fn), scale


def prepare(x, w, n):
    weights, scale_w = quantized(w)
    compiled = torch.compile(quantized, fullgraph=True, dynamic=False)

    def step():
        values, scale_x = compiled(x)
        product = torch._scaled_mm(values, weights.T, scale_x, scale_w.T, out_dtype=torch.bfloat16, use_fast_accum=True)
        return F.rms_norm(product, (n,))

    return step
