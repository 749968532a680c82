"""Cheat: returns zeros."""

import torch


def prepare(x, rows):
    return lambda: torch.zeros(rows, device=x.device)
