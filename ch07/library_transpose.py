"""Library: PyTorch's copy_ of a transposed view into a contiguous tensor."""

import torch


def prepare(x, rows, cols):
    y = torch.empty(cols, rows, dtype=x.dtype, device=x.device)

    def step():
        return y.copy_(x.T)

    return step
