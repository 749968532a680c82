"""Cheat: once it is timed, its work waits for the timed stream, and nothing on that waits for it: the clock stops beside it."""

import torch

HONEST_CALLS = 2


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    aside = torch.cuda.Stream()
    calls = 0

    def step():
        nonlocal calls
        calls += 1
        if calls <= HONEST_CALLS:
            return torch.sum(x, dim=1, out=y)
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            return torch.sum(x, dim=1, out=y)

    return step
