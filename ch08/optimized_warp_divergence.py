"""Optimized: the sequences go by length, the longest first, so those with a step to take are the first rows, and only they take it."""
# expects: 1.9x, a length is as likely as any other, so half of the steps exist, and are half of the flops; their rows of x are copied once
# proves: kernel Sort
# allows: sync

import torch


def prepare(x, u, lengths):
    times = torch.arange(len(x), device=x.device)[:, None]

    def step():
        order = lengths.argsort(descending=True)
        takers = (lengths > times).sum(dim=1).tolist()  # the host waits here, once, for how many sequences take each step
        h = torch.zeros_like(x[0])
        for now, n in zip(x, takers, strict=True):
            torch.tanh(torch.addmm(now[order[:n]], h[:n], u), out=h[:n])
        return torch.empty_like(h).index_copy_(0, order, h)

    return step
