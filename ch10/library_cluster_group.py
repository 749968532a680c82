"""Library: PyTorch's softmax."""

import torch


def prepare(x):
    y = torch.empty_like(x)
    return lambda: torch.softmax(x, 1, out=y)
