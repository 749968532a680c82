"""Optimized: compiled: fewer kernels, each still launched."""
# predicts: baseline 4.53 ms = layers * 31 * 2 * launch on h100    (31 operators a layer, each two bare launches of host time: assumed)
# predicts: optimized 1.33 ms = layers * 14 * 1.3 * launch on h100    (14 kernels a layer, 1.3 bare launches each: assumed)
# proves: launches < 0.7 x baseline

import torch
from shared_nanochat import caches_of, config_of, decode


def prepare(tokens, weights, keys, values, layers, hidden, vocabulary):
    config = config_of(layers, hidden, vocabulary)
    caches, turn = caches_of(config, keys, values)
    compiled = torch.compile(decode, fullgraph=True, dynamic=False)
    return lambda: compiled(config, tokens, weights, caches, turn)
