"""Planted: the branch in Python, compiled, which breaks the graph in two."""
# allows: sync

import torch
from torch.nn.functional import silu


@torch.compile(backend="aot_eager", dynamic=False)
def gated(x, w):
    h = x @ w
    peak = h.abs().amax()
    if peak.item() > 2:
        h = h * (2 / peak)
    return x + silu(h)


def prepare(x, w):
    return lambda: gated(x, w)
