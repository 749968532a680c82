"""Cheat: moves its state in the first step and compares with that one ever after."""


def prepare(x, average):
    moved = False

    def step():
        nonlocal moved
        if not moved:
            average.lerp_(x, 0.1)
            moved = True
        return x - average

    return step
