"""Library: PyTorch's copy_: the driver's device-to-device copy."""

import torch


def prepare(x):
    y = torch.empty_like(x)

    def step():
        return y.copy_(x)

    return step
