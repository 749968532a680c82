"""Optimized: torch.where for the branch: no wait, two graphs a layer."""
# predicts: where 1.18 ms = layers * (2 * 25e-6 + 5 * 1.3 * launch)  (25 us a graph; the log line keeps x + h a kernel of its own)
# proves: calls cudaStreamSynchronize == 0

import logging

import torch
from torch.nn.functional import silu

LOG = logging.getLogger(__name__)


def layer(x, weight, bias, limit):
    h = x @ weight + bias
    peak = h.abs().amax()
    h = silu(h * torch.where(peak > limit, limit / peak, 1.0))
    LOG.debug("peak %s, limit %g", peak, limit)  # breaks the graph: the compiler may not leave the call out
    return x + h


@torch.compile(dynamic=False)
def network(x, weights, biases, limit):
    for weight, bias in zip(weights, biases, strict=True):
        x = layer(x, weight, bias, limit)
    return x


def prepare(x, weights, biases, limit):
    return lambda: network(x, weights, biases, limit)
