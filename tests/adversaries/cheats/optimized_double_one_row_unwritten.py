"""Cheat: leaves a single row of a large matrix as it finds it, which no sample of rows is likely to have."""

import torch


def prepare(x, count):
    y = torch.empty_like(x)
    row = count // 2 if count > 1024 else count

    def step():
        torch.mul(x[:row], 2, out=y[:row])
        torch.mul(x[row + 1 :], 2, out=y[row + 1 :])
        return y

    return step
