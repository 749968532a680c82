"""Baseline: one operation per time step: 512 dependent launches."""

import torch


def prepare(x, decay):
    h = torch.empty_like(x)

    def step():
        h[0] = x[0]
        for t in range(1, len(x)):
            torch.addcmul(x[t], decay, h[t - 1], out=h[t])
        return h

    return step
