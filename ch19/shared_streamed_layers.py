"""A stack of layers whose weights lie in host memory: what a layer computes once its weights are in a buffer on the device."""

import torch
from torch.nn.functional import linear, relu, rms_norm


def buffers_of(weights, device, count):
    """`count` buffers on the device, each for one layer's weights."""
    return [torch.empty_like(weights[0], device=device) for _ in range(count)]


def layer(x, buffer):
    """x, [tokens, width], plus a feed-forward of its norm; the buffer [2, inner, width] holds up and the transpose of down."""
    up, down = buffer
    return x + linear(relu(linear(rms_norm(x, x.shape[-1:]), up)), down.T)
