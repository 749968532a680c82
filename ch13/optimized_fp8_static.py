"""Optimized: scales are found once, from calibration data."""
# predicts: baseline 86.6 us = layers * (width**2 / dram_read + 3e-6 + 7 * 2e-6) + 4e-6  (7 kernels of 2 us per layer; the norm 4 us)
# predicts: optimized 62.6 us = layers * (width**2 / dram_read + 3e-6 + 4 * 2e-6) + 4e-6  (4 kernels: three that find the scale are gone)
# proves: launches < 0.85 x baseline

from shared_fp8 import packed, scale_of, stack


def prepare(x, samples, weights):
    layers, scales = packed(weights), []

    def calibrate(_, values):
        scales.append(scale_of(values))
        return scales[-1]

    stack(samples, layers, calibrate)
    return lambda: stack(x, layers, lambda i, _: scales[i])
