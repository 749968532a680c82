"""Baseline: one stream: the prompt first, then the decode steps, a CUDA graph, which leave tensor cores idle."""
# allows: alloc
# has: graph_nodes >= 40

import torch
from shared_decode_step import decode
from shared_prefill import prefill

from common.graph import captured


def prepare(weights, config, prompted, tokens, keys, values, context):
    own = (len(keys), len(prompted), *keys.shape[3:])
    new_keys, new_values = keys.new_empty(own), values.new_empty(own)
    at = torch.full_like(tokens[0], context)
    steps = captured(lambda: torch.stack([decode(weights, config, keys, values, ids, at + i) for i, ids in enumerate(tokens)]))

    def step():
        first = prefill(weights, config, prompted, new_keys, new_values)
        return first, steps()

    return step
