"""Baseline: every logarithm, as torch does it."""

import torch


def prepare(x):
    return lambda: torch.log(x)
