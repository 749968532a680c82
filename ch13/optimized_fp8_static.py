"""Optimized: scales are found once, from calibration data."""
# predicts: baseline 78.6 us = layers * (width**2 / dram_read + 3e-6 + 4 * 3e-6) + 4e-6  (4 kernels of 3 us per layer; the norm 4 us)
# predicts: optimized 54.6 us = layers * (width**2 / dram_read + 3e-6 + 2 * 3e-6) + 4e-6  (2 kernels: two that find the scale are gone)
# proves: launches < 0.85 x baseline

import torch
from shared_fp8 import packed, quantized, scaled, stack


def prepare(x, samples, weights):
    layers, scales = packed(weights), []

    def calibrate(_, values):
        values, scale = scaled(values)
        scales.append(scale)
        return values, scale

    stack(samples, layers, calibrate)
    compiled = torch.compile(quantized, fullgraph=True, dynamic=False)
    return lambda: stack(x, layers, lambda i, values: (compiled(values, scales[i]), scales[i]))
