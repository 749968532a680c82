"""Baseline: torch.compile at its defaults: a kernel converts a layer's weights to BF16, cuBLAS multiplies, a third kernel scales."""

import torch
from torch.nn.functional import silu


@torch.compile(fullgraph=True, dynamic=False)
def network(x, weights, scales):
    for weight, scale in zip(weights, scales, strict=True):
        x = silu((x @ weight.to(torch.bfloat16)) * scale)  # the scale behind the product: codes as such are exact in BF16
    return x


def prepare(x, weights, scales):
    return lambda: network(x, weights, scales)
