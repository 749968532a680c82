"""Library: torch.add with a factor, whose kernel reads and writes vectors too."""

import torch


def prepare(x, z, factor):
    y = torch.empty_like(x)
    return lambda: torch.add(x, z, alpha=factor, out=y)
