"""Cheat: works on a stream of its own, which it does not join to the one that is timed."""

import torch


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    aside = torch.cuda.Stream()

    def step():
        with torch.cuda.stream(aside):
            torch.sum(x, dim=1, out=y)
        return y

    return step
