"""Baseline: the whole batch goes from stage to stage, so one GPU computes at a time."""

import torch
import torch.distributed as dist
from shared_layers import new_cache, run
from shared_weights import config_of

from common.graph import captured


def prepare(x, weights, rank, ranks, sequences, tokens, layers, hidden, heads, ffn):
    config = config_of(layers // ranks, hidden, heads, ffn)
    cache = new_cache(config, sequences, tokens, x)
    incoming = torch.empty_like(x) if rank else x
    stage = captured(lambda: run(weights, config, incoming, cache, 0))

    def step():
        if rank > 0:
            dist.recv(incoming, rank - 1)
        out = stage()
        if rank + 1 < ranks:
            dist.send(out, rank + 1)
        y = out[:, -1].contiguous()
        dist.broadcast(y, ranks - 1)
        return y

    return step
