"""Baseline: tiles of 128 x 128, K-steps of 32, four warps and three stages: a usual default, made for square matrices."""

from shared_skinny import Launch, product


def prepare(a, b):
    return product(a, b, Launch(rows=128, cols=128, depth=32, warps=4, stages=3))
