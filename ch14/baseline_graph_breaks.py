"""Baseline: Python logs a peak and branches on it: 3 graphs, a wait."""
# allows: sync

import logging

import torch
from torch.nn.functional import silu

LOG = logging.getLogger(__name__)


def layer(x, weight, bias, limit):
    h = x @ weight + bias
    peak = h.abs().amax()
    if (peak > limit).item():  # breaks the graph: Python needs the value, so the host waits for it
        h = h * (limit / peak)
    h = silu(h)
    LOG.debug("peak %s, limit %g", peak, limit)  # breaks the graph: the compiler may not leave the call out
    return x + h


@torch.compile(dynamic=False)
def network(x, weights, biases, limit):
    for weight, bias in zip(weights, biases, strict=True):
        x = layer(x, weight, bias, limit)
    return x


def prepare(x, weights, biases, limit):
    return lambda: network(x, weights, biases, limit)
