"""Baseline: a default for 16 rows: tiles of 16 x 128, K-steps of 64, four warps and three stages, whatever n is."""

from shared_launches import DEFAULT
from shared_skinny import product


def prepare(a, b, used):
    return product(a, b, used, DEFAULT)
