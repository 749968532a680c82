"""Optimized: TF32 on: the same FP32 tensors, multiplied by the tensor cores with 10 bits of mantissa, summed in FP32."""
# expects: 7.5x, 412 GFLOP at 51 TFLOP/s against 400, beside 0.06 ms of GELU on both sides; 1x on a CPU, which has no TF32
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
