"""Baseline: one addition a column, each of which reads and writes the whole vector of sums."""

import torch


def prepare(x):
    rows, cols = x.shape
    y = torch.empty(rows, dtype=x.dtype, device=x.device)

    def step():
        y.zero_()
        for c in range(cols):
            y.add_(x[:, c])
        return y

    return step
