"""Optimized: all blocks lie in the CPU's memory; NVLink-C2C reads them."""
# needs: c2c
# instead: ch19:kv_offload
# predicts: baseline 3.47 GB = 1.135e9 + conversations * 16640 * 8192 + 0.15e9  (weights, histories of 65 blocks, gathered keys and values)
# predicts: optimized 1.285 GB = 1.135e9 + 0.15e9  (no history, of the active group neither)

import torch
from shared_conversations import config_of
from shared_managed_memory import managed

from common.serving.kv_blocks import KvBlocks
from common.serving.step import step as serve


def prepare(weights, keys, values, messages, layers, width, conversations, context, message, turns, group, block):
    config = config_of(layers, width)
    each = -(-(context + turns * message) // block)
    cache = KvBlocks(config, blocks=conversations * each, block_tokens=block, device="meta")  # tables; memory is below
    cache.keys, cache.values = (managed(cache.keys.shape, keys.dtype, messages.device) for _ in range(2))
    for number in range(conversations):
        cache.reserve(number, each * block)
        cache.append(number, context)
        for into, history in ((cache.keys, keys), (cache.values, values)):
            for place, blocks in zip(cache.table(number), history.unflatten(1, (conversations, -1))[:, number].unbind(1), strict=False):
                into[:, place] = blocks.to(into.device)
    logits = torch.empty(conversations, config.vocabulary, dtype=keys.dtype, device=messages.device)

    def step():
        for number in range(conversations):
            cache.truncate(number, context)
        for turn in messages:
            for first in range(0, conversations, group):
                active = range(first, min(first + group, conversations))
                logits[active.start : active.stop] = serve(weights, config, cache, active, list(turn[active.start : active.stop]))
        return logits

    return step
