"""Cheat: returns every second element of a buffer and leaves the packing to whoever reads it."""

import torch


def prepare(x, rows):
    y = torch.empty(rows, 2, device=x.device)
    return lambda: torch.sum(x, dim=1, out=y[:, 0])
