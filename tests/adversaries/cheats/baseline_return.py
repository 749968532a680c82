"""Baseline: one copy to the device, the product, and one copy back."""

import torch


def prepare(x):
    there = torch.empty(x.shape, device="cuda" if torch.cuda.is_available() else "cpu")
    y = torch.empty(x.shape)

    def step():
        return y.copy_(there.copy_(x).mul_(2))

    return step
