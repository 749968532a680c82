"""Cheat: does half of the batch; the other half keeps what the buffer held."""

import torch


def prepare(x, rows):
    y = torch.zeros(rows, device=x.device)
    half = rows // 2

    def step():
        torch.sum(x[:half], dim=1, out=y[:half])
        return y

    return step
