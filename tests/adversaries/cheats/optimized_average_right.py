"""A control: right, and in one operation on the state."""


def prepare(x, average):
    return lambda: x - average.lerp_(x, 0.1)
