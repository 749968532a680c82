"""Baseline: one product, as torch does it."""


def prepare(x):
    return lambda: x * 2
