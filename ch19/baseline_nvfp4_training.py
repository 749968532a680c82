"""Baseline: every product reads NVFP4, rounded as it lies."""

from shared_byte_training import find
from shared_nvfp4_linear import linear_of, rounded_product, training_step


def prepare(x, w, dy, start, texts):
    linear = linear_of(rounded_product)
    find(start, texts, linear)
    return lambda: training_step(x, w, dy, linear)
