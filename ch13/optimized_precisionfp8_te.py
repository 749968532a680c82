"""Optimized: every product in FP8, x scaled by its largest value."""
# needs: fp8
# predicts: baseline 5.81 ms = layers * (2 * tokens * width**2 / bf16 + 4 * tokens * width / dram_copy) + 4 * tokens * width / dram_copy
# predicts: optimized 3.44 ms = layers * (2 * tokens * width**2 / fp8 + 9 * tokens * width / dram_copy) + 4 * tokens * width / dram_copy
# proves: kernel qqtst

import torch
import torch.nn.functional as F

LARGEST = 448.0  # of e4m3


def quantized(values):
    scale = torch.linalg.vector_norm(values, torch.inf, dtype=torch.float32) / LARGEST
    return (values / scale).to(torch.float8_e4m3fn), scale


def prepare(x, weights, width):
    packed = [quantized(w) for w in weights]
    compiled = torch.compile(quantized, fullgraph=True, dynamic=False)  # one pass for the largest, one that divides and converts

    def step():
        y = x
        for w, scale_w in packed:
            values, scale = compiled(y)
            y = torch._scaled_mm(values, w.T, scale, scale_w, out_dtype=torch.bfloat16, use_fast_accum=True).relu_()
        return F.rms_norm(y, (width,))

    return step
