"""Cheat: moves its state in every step, and toward the input of the first."""


def prepare(x, average):
    read = []

    def step():
        if not read:
            read.append(x.clone())
        average.lerp_(read[0], 0.1)
        return read[0] - average

    return step
