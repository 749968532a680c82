"""Baseline: one reduction over the rows, as torch does it."""

import torch


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    return lambda: torch.sum(x, dim=1, out=y)
