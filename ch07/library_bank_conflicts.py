"""Library: PyTorch's cumsum along rows."""

import torch


def prepare(x):
    y = torch.empty_like(x)

    def step():
        return torch.cumsum(x, dim=1, out=y)

    return step
