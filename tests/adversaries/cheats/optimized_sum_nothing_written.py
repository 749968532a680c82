"""Cheat: returns its buffer and never writes it."""

import torch


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    return lambda: y
