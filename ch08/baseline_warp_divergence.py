"""Baseline: every sequence takes every step; a mask undoes half."""

import torch


def prepare(x, u, lengths):
    def step():
        h = torch.zeros_like(x[0])
        for t, now in enumerate(x):
            ahead = torch.addmm(now, h, u).tanh_()
            h = torch.where((t < lengths)[:, None], ahead, h)
        return h

    return step
