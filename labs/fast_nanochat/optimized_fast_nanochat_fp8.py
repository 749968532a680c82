"""Optimized: weights in e4m3: half the bytes are read."""
# predicts: baseline 0.666 ms = (0.954e9 + 105e6) / dram_read + layers * 14 * 1.2e-6 on h100    (weights, cache, 1.2 us a kernel)
# predicts: optimized 0.517 ms = (0.477e9 + 105e6) / dram_read + layers * 14 * 1.2e-6 on h100    (as many kernels)
# proves: counter dram__bytes.sum < 0.7 x baseline

import torch
from shared_fp8_product import linear, packed
from shared_nanochat import caches_of, config_of, decode

from common.graph import captured


def prepare(tokens, weights, keys, values, layers, hidden, vocabulary):
    config = config_of(layers, hidden, vocabulary)
    caches, turn = caches_of(config, keys, values)
    weights = packed(weights)
    compiled = torch.compile(decode, fullgraph=True, dynamic=False)
    return captured(lambda: compiled(config, tokens, weights, caches, turn, linear))
