"""Baseline: tiles of 128 x 128, K-steps of 32, four warps and three stages: a usual first guess, never timed against another."""

from shared_pointer_matmul import by_pointers
from shared_tiles import Tile


def prepare(a, b):
    return by_pointers(a, b, Tile(rows=128, cols=128, depth=32, warps=4, stages=3))
