"""Optimized: no log line: fullgraph=True has one graph of all layers."""
# predicts: baseline 1.9 ms = layers * (3 * 25e-6 + 15e-6 + 6 * 1.3 * launch)  (25 us a graph, 15 us a wait: assumed)
# predicts: optimized 0.404 ms = layers * 4 * 1.3 * launch + 0.1e-3  (one graph's guards and call: assumed)
# proves: calls cudaStreamSynchronize == 0
# proves: launches < 0.9 x baseline

import torch
from torch.nn.functional import silu


def layer(x, weight, bias, limit):
    h = x @ weight + bias
    peak = h.abs().amax()
    h = h * torch.where(peak > limit, limit / peak, 1.0)
    return x + silu(h)


@torch.compile(fullgraph=True, dynamic=False)
def network(x, weights, biases, limit):
    for weight, bias in zip(weights, biases, strict=True):
        x = layer(x, weight, bias, limit)
    return x


def prepare(x, weights, biases, limit):
    return lambda: network(x, weights, biases, limit)
