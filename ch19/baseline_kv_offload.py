"""Baseline: keys and values of all conversations stay on the device, whether they are active or idle."""

import torch
from shared_conversations import config_of

from common.serving.kv_blocks import KvBlocks
from common.serving.step import step as serve


def prepare(weights, keys, values, messages, layers, width, conversations, context, message, turns, group, block):
    config = config_of(layers, width)
    each = -(-(context + turns * message) // block)
    cache = KvBlocks(config, blocks=conversations * each, block_tokens=block, device=messages.device)
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
