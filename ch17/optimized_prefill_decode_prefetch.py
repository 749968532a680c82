"""Each layer's keys and values leave as soon as they exist."""
# predicts: baseline 33.7 ms = layers * (1.79e12 / 600e12 + 67.1e6 / d2h) on h100  (a layer computes 1.79 TFLOP, leaves 67 MB)
# predicts: optimized 25.1 ms = layers * 1.79e12 / 600e12 + 67.1e6 / d2h on h100  (the last layer's copy is left)
# proves: overlap >= 0.5

import torch
from shared_layers import new_cache, run
from shared_weights import config_of


def prepare(x, weights, layers, tokens, hidden, heads, ffn):
    config = config_of(layers, hidden, heads, ffn)
    cache = new_cache(config, 1, tokens, x)
    kv = torch.empty(cache.shape, dtype=x.dtype, pin_memory=x.is_cuda)
    aside = torch.cuda.Stream() if x.is_cuda else None

    def push(layer):
        if aside is None:
            kv[layer].copy_(cache[layer])
            return
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            kv[layer].copy_(cache[layer], non_blocking=True)

    def step():
        y = run(weights, config, x, cache, 0, computed=push)
        if aside is not None:
            torch.cuda.current_stream().wait_stream(aside)
        return y, kv

    return step
