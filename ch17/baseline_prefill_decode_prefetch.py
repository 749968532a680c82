"""Baseline: keys and values are copied when the whole prompt is done."""

import torch
from shared_layers import new_cache, run
from shared_weights import config_of


def prepare(x, weights, layers, tokens, hidden, heads, ffn):
    config = config_of(layers, hidden, heads, ffn)
    cache = new_cache(config, 1, tokens, x)
    kv = torch.empty(cache.shape, dtype=x.dtype, pin_memory=x.is_cuda)

    def step():
        y = run(weights, config, x, cache, 0)
        kv.copy_(cache, non_blocking=True)
        return y, kv

    return step
