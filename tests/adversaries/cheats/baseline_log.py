"""Baseline: every logarithm, as torch does it."""


def prepare(x):
    return lambda: x.log()
