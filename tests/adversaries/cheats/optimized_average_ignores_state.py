"""Cheat: takes every step for the first and never moves its state."""


def prepare(x, average):
    return lambda: x - average.lerp(x, 0.1)
