"""Baseline: at every call, each layer finds the largest of its inputs first, and scales by it."""

import torch
from shared_fp8 import packed, scaled, stack


def prepare(x, weights):
    layers, compiled = packed(weights), torch.compile(scaled, fullgraph=True, dynamic=False)
    return lambda: stack(x, layers, lambda _, values: compiled(values))
