"""Cheat: returns what is right, from a copy of the state, and saves itself writing the state."""


def prepare(x, average):
    mine = average.clone()
    return lambda: x - mine.lerp_(x, 0.1)
