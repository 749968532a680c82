"""Library: PyTorch's copy of a tensor into another, which is the driver's own copy on the device."""

import torch


def prepare(x):
    y = torch.empty_like(x)

    def step():
        return y.copy_(x)

    return step
