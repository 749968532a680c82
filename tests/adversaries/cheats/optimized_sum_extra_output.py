"""Cheat: returns two answers, for the reader to choose from."""

import torch


def prepare(x):
    return lambda: (x.sum(dim=1), torch.zeros_like(x[:, 0]))
