"""Baseline: at every call, each layer finds the largest of its inputs first, and scales by it."""

from shared_fp8 import packed, scale_of, stack


def prepare(x, weights):
    layers = packed(weights)
    return lambda: stack(x, layers, lambda _, values: scale_of(values))
