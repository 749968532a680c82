"""Baseline: one addition a column, each of which reads and writes the whole vector of sums."""

import torch


def prepare(x):  # inputs and entries of the shape, by name; not timed
    rows, cols = x.shape
    y = torch.empty(rows, dtype=x.dtype, device=x.device)

    def step():  # timed; x has new values in every call
        y.zero_()
        for c in range(cols):
            y.add_(x[:, c])
        return y

    return step
