"""Optimized: TF32: FP32 tensors multiplied by the tensor cores."""
# predicts: baseline 8.14 ms = 6 * batch * width**2 / 51e12 + 0.06e-3  (FP32 products; two GELUs through DRAM)
# predicts: optimized 1.09 ms = 6 * batch * width**2 / 400e12 + 0.06e-3  (TF32 tensor cores)
# proves: kernel tf32

import torch
from torch.nn.functional import gelu


def prepare(x, weights):
    def step():
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        hidden = x
        for weight in weights[:-1]:
            hidden = gelu(hidden @ weight)
        return hidden @ weights[-1]

    return step
