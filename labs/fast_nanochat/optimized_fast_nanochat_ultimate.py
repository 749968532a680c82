"""Optimized: graph, compiled, e4m3, and one product for q, k, v."""
# predicts: baseline 4.53 ms = layers * 31 * 2 * launch on h100    (31 operators a layer, each two bare launches of host time: assumed)
# predicts: optimized 0.469 ms = (0.477e9 + 105e6) / dram_read + layers * 12 * 1.2e-6 on h100    (two kernels fewer a layer)
# proves: launches < 0.1 x baseline

import torch
from shared_fp8_product import linear, packed
from shared_nanochat import caches_of, config_of, decode, merged

from common.graph import captured


def prepare(tokens, weights, keys, values, layers, hidden, vocabulary):
    config = config_of(layers, hidden, vocabulary)
    caches, turn = caches_of(config, keys, values)
    weights = packed(merged(weights))
    compiled = torch.compile(decode, fullgraph=True, dynamic=False)
    return captured(lambda: compiled(config, tokens, weights, caches, turn, linear))
