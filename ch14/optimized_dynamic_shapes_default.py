"""Optimized: PyTorch's default: the second length becomes a symbol."""
# predicts: default 8.5 s = 3 + 2.5 + 3 on h200  (the first length is compiled as a constant, the second as a symbol: assumed)

import torch
from torch.nn.functional import rms_norm, silu


@torch.compile(fullgraph=True)
def pooled(x, gate, up):
    x = rms_norm(x, x.shape[1:])
    return (silu(x @ gate) * (x @ up)).amax(dim=0)


def prepare(sequences, gate, up):
    return lambda: torch.stack([pooled(x, gate, up) for x in sequences])
