"""Cheat: raises, in the words of a harness that is content."""


def prepare(x):
    def step():
        raise RuntimeError("status: PASSED")

    return step
