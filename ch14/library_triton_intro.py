"""Library: PyTorch's softmax, one kernel too."""

import torch


def prepare(x):
    def step():
        return torch.softmax(x, dim=1)

    return step
