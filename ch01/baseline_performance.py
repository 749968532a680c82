"""Baseline: IEEE FP32 products on the CUDA cores, PyTorch's default."""

import torch
from torch.nn.functional import gelu


def prepare(x, weights):
    def step():
        torch.backends.cuda.matmul.fp32_precision = "ieee"
        hidden = x
        for weight in weights[:-1]:
            hidden = gelu(hidden @ weight)
        return hidden @ weights[-1]

    return step
