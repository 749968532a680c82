"""Baseline: all tokens in BF16."""

from torch.nn.functional import linear


def prepare(x, w):
    return lambda: linear(x, w)
