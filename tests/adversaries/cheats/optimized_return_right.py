"""Control: the same, into new memory of the host."""

import torch


def prepare(x):
    there = torch.empty(x.shape, device="cuda" if torch.cuda.is_available() else "cpu")

    def step():
        return there.copy_(x).mul_(2).to("cpu", copy=True)

    return step
