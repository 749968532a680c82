"""Optimized: the next group's blocks come while a group computes."""
# predicts: baseline 89.1 ms = conversations / group * turns * (16640 * 8192 * group / h2d + 5.7e-3) on h100  (copy in; step and copy back)
# predicts: optimized 50.6 ms = conversations / group * turns * max(16640 * 8192 * group / h2d + 0.2e-3, 5.5e-3) + 5.5e-3 on h100 (see page)
# proves: overlap >= 0.5

import torch
from shared_conversations import config_of
from shared_idle_blocks import IdleBlocks

from common.serving.step import step as serve


def prepare(weights, keys, values, messages, layers, width, conversations, context, message, turns, group, block):
    config = config_of(layers, width)
    sizes = {"conversations": conversations, "context": context, "added": turns * message, "seats": 2 * group}
    cache = IdleBlocks(config, (keys, values), messages.device, **sizes)
    logits = torch.empty(conversations, config.vocabulary, dtype=keys.dtype, device=messages.device)
    backend = torch.get_device_module(messages.device)
    copying = backend.Stream()
    groups = [range(first, min(first + group, conversations)) for first in range(0, conversations, group)]
    order = [(number, active) for number in range(turns) for active in groups]

    def fetch(number, active):
        """Queue the copies of a group's blocks behind those queued before; the event says when they are there."""
        with backend.stream(copying):
            for conversation in active:
                cache.resume(conversation, context + number * message)
            return copying.record_event()

    def step():
        main = backend.current_stream()
        copying.wait_stream(main)
        there = fetch(*order[0])
        for place, (number, active) in enumerate(order):
            main.wait_event(there)
            part = slice(active.start, active.stop)
            logits[part] = serve(weights, config, cache.pool, active, list(messages[number, part]))
            if len(groups) > 1 and place + 1 < len(
                order
            ):  # of another group, so its blocks can come now: behind what this step copies itself
                there = fetch(*order[place + 1])
            copying.wait_stream(main)
            with backend.stream(copying):
                for conversation in active:
                    cache.suspend(conversation)
            if len(groups) == 1 and place + 1 < len(order):
                there = fetch(*order[place + 1])
        main.wait_stream(copying)
        return logits

    return step
