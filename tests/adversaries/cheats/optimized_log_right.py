"""Control: the same, into a buffer of its own."""

import torch


def prepare(x):
    y = torch.empty_like(x)
    return lambda: torch.log(x, out=y)
