"""Conversations one by one, each in a cache of its own: what a reference computes."""

import torch
from shared_conversations import config_of

from common.serving.dense_cache import DenseCache, dense_step


def reference(weights, keys, values, messages, layers, width, conversations, context):
    """A conversation after the other, each in a cache of its own, and the logits behind its last message."""
    config = config_of(layers, width, weights["embedding"].dtype)
    rows = []
    for number in range(conversations):
        capacity = context + messages.shape[0] * messages.shape[2]
        cache = DenseCache(config, sequences=1, capacity=capacity, device=keys.device, dtype=keys.dtype)
        for into, history in ((cache.keys, keys), (cache.values, values)):
            into[:, 0, :context] = history.unflatten(1, (conversations, -1))[:, number].flatten(1, 2)[:, :context]
        cache.length = context
        for message in messages[:, number]:
            scores = dense_step(weights, config, cache, message[None])
        rows.append(scores[0, -1])
    return torch.stack(rows)
