"""Baseline: one operation per time step: 512 dependent launches."""

from itertools import pairwise

import torch


def prepare(x, decay):
    h = torch.empty_like(x)
    inputs, states = x.unbind(), h.unbind()  # views, made once: a step launches and does nothing else

    def step():
        states[0].copy_(inputs[0])
        for now, (before, after) in zip(inputs[1:], pairwise(states), strict=True):
            torch.addcmul(now, decay, before, out=after)
        return h

    return step
