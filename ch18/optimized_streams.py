"""Optimized: decode in a stream of its own, beside the prefill."""
# guess: 1.2x, decode waits for DRAM and prefill for tensor cores, but both want the same SMs and the same L2
# needs: gpus 1
# proves: overlap >= 0.3
# has: graph_nodes >= 40
# allows: alloc

import torch
from shared_decode_step import decode
from shared_prefill import prefill

from common.graph import captured


def prepare(weights, config, prompted, tokens, keys, values, context):
    own = (len(keys), len(prompted), *keys.shape[3:])
    new_keys, new_values = keys.new_empty(own), values.new_empty(own)
    at = torch.full_like(tokens[0], context)
    decoding = torch.cuda.Stream(priority=-1)  # its few blocks take the next free SM, before those of the prefill
    steps = captured(
        lambda: torch.stack([decode(weights, config, keys, values, ids, at + i) for i, ids in enumerate(tokens)]), stream=decoding
    )

    def step():
        caller = torch.cuda.current_stream()
        decoding.wait_stream(caller)  # fork: inputs were written on the caller's stream
        with torch.cuda.stream(decoding):
            answers = steps()
        first = prefill(weights, config, prompted, new_keys, new_values)
        caller.wait_stream(decoding)  # join
        return first, answers

    return step
