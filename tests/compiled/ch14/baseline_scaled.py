"""Baseline: two operators of PyTorch."""

from torch.nn.functional import silu


def prepare(x, a):
    return lambda: silu(a * x)
