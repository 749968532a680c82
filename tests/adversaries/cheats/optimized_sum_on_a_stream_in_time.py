"""Cheat: works in order in a check, and once it is timed on a stream of its own, which it does not join."""

import torch

HONEST_CALLS = 2


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    aside = torch.cuda.Stream()
    calls = 0

    def step():
        nonlocal calls
        calls += 1
        with torch.cuda.stream(aside if calls > HONEST_CALLS else torch.cuda.current_stream()):
            torch.sum(x, dim=1, out=y)
        return y

    return step
