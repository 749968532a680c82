"""Library: PyTorch's mm: cuBLAS in float32 on a GPU."""

import torch


def prepare(a, b, m, n):
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)

    def step():
        return torch.mm(a, b, out=c)

    return step
