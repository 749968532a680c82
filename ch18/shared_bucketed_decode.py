"""Decode steps by CUDA graphs: each step pads its batch to the smallest bucket of which there is a graph, and drops padding's answers."""

from functools import partial

import torch
from shared_decode_step import decode

from common.graph import captured


def decoder(weights, config, keys, values, tokens, positions, sizes, buckets):
    """A step over all batches: logits, one row a request. `buckets` are batch sizes; the largest takes any batch."""
    slots, nowhere = keys.shape[1], keys.shape[2] - 1  # padding writes its key and value to a position that no request has
    ids = torch.zeros(slots, dtype=torch.int64, device=tokens.device)
    at = torch.full_like(ids, nowhere)
    pool = torch.cuda.graph_pool_handle() if tokens.is_cuda else None
    call = lambda bucket: decode(weights, config, keys, values, ids[:bucket], at[:bucket])
    replays = {bucket: captured(partial(call, bucket), pool) for bucket in sorted(buckets, reverse=True)}
    logits = torch.empty(sum(sizes), config.vocabulary, dtype=config.dtype, device=tokens.device)

    def step():
        for new, where, size, rows in zip(tokens, positions, sizes, logits.split(sizes), strict=True):
            ids.zero_()[:size].copy_(new[:size])
            at.fill_(nowhere)[:size].copy_(where[:size])
            rows.copy_(replays[min(bucket for bucket in buckets if bucket >= size)]()[:size])
        return logits

    return step
