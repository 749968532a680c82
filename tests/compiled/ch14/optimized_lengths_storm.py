"""Planted: compiled anew for each length, until PyTorch gives the function up."""

import torch
from torch.nn.functional import silu


@torch.compile(backend="aot_eager", dynamic=False)
def pooled(x, w):
    return silu(x @ w).amax(dim=0)


def prepare(sequences, w):
    return lambda: torch.stack([pooled(x, w) for x in sequences])
