"""Baseline: the blocks of a group come back from host memory, and then its step runs, in one stream."""

import torch
from shared_conversations import config_of
from shared_idle_blocks import IdleBlocks

from common.serving.step import step as serve


def prepare(weights, keys, values, messages, layers, width, conversations, context, message, turns, group, block):
    config = config_of(layers, width)
    sizes = {"conversations": conversations, "context": context, "added": turns * message, "seats": group}
    cache = IdleBlocks(config, (keys, values), messages.device, **sizes)
    logits = torch.empty(conversations, config.vocabulary, dtype=keys.dtype, device=messages.device)

    def step():
        for number, turn in enumerate(messages):
            for first in range(0, conversations, group):
                active = range(first, min(first + group, conversations))
                for conversation in active:
                    cache.resume(conversation, context + number * message)
                logits[active.start : active.stop] = serve(weights, config, cache.pool, active, list(turn[active.start : active.stop]))
                for conversation in active:
                    cache.suspend(conversation)
        return logits

    return step
