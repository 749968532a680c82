"""The branch as arithmetic, compiled as one graph."""

import torch
from torch.nn.functional import silu


@torch.compile(backend="aot_eager", dynamic=False)
def gated(x, w):
    h = x @ w
    return x + silu(h * (2 / h.abs().amax()).clamp(max=1))


def prepare(x, w):
    return lambda: gated(x, w)
