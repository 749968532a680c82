"""Cheat: empties its state in a single call, behind the steps of a check, and is right again from there."""

HONEST_CALLS = 4


def prepare(x, average):
    calls = 0

    def step():
        nonlocal calls
        calls += 1
        if calls == HONEST_CALLS + 1:
            average.zero_()
        return x - average.lerp_(x, 0.1)

    return step
