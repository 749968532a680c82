"""Library: torch.mm in IEEE float32, which is cuBLAS's SGEMM."""

import torch


def prepare(a, b):
    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)

    def step():
        torch.backends.cuda.matmul.fp32_precision = "ieee"
        return torch.mm(a, b, out=c)

    return step
