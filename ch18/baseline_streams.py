"""Baseline: one stream: the prompt first, then the decode steps, which leave most of the SMs idle and wait for the host."""
# allows: alloc

import torch
from shared_decode_step import decode
from shared_prefill import prefill


def prepare(weights, config, prompted, tokens, keys, values, context):
    own = (len(keys), len(prompted), *keys.shape[3:])
    new_keys, new_values = keys.new_empty(own), values.new_empty(own)
    at = torch.full_like(tokens[0], context)

    def step():
        first = prefill(weights, config, prompted, new_keys, new_values)
        return first, torch.stack([decode(weights, config, keys, values, ids, at + i) for i, ids in enumerate(tokens)])

    return step
