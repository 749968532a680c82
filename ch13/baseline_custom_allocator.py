"""Baseline: PyTorch's allocator as it is: each block of a new size is taken from the driver, and kept."""

from shared_growing_cache import grow


def prepare(x, query, gains):
    return grow(x, query, gains)
