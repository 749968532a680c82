"""Library: PyTorch's copy of a tensor into another."""

import torch


def prepare(x):
    y = torch.empty_like(x)

    def step():
        return y.copy_(x)

    return step
