"""One sequence at a time goes on, so all stages compute."""
# predicts: baseline 22.5 ms = 2 * sequences * 0.84e12 / 600e12 + 34e6 / 300e9  (two GPUs; a stage of 4 layers; rates assumed)
# predicts: optimized 12.7 ms = (sequences + 1) * (0.84e12 / 600e12 + 4.2e6 / 300e9)  (9 intervals of one sequence)
# proves: launches in nccl >= 8

import torch
import torch.distributed as dist
from shared_layers import new_cache, run
from shared_weights import config_of

from common.graph import captured


def prepare(x, weights, rank, ranks, sequences, tokens, layers, hidden, heads, ffn):
    config = config_of(layers // ranks, hidden, heads, ffn)
    incoming = (torch.empty_like(x) if rank else x).split(1)

    def stage_of(sequence):
        """The stage's layers on one sequence, which has a cache of its own."""
        cache = new_cache(config, 1, tokens, x)
        return captured(lambda: run(weights, config, sequence, cache, 0))

    stages = [stage_of(sequence) for sequence in incoming]

    def step():
        last = []
        for sequence, stage in zip(incoming, stages, strict=True):
            if rank > 0:
                dist.recv(sequence, rank - 1)
            out = stage()
            if rank + 1 < ranks:
                dist.send(out, rank + 1)  # an isend would keep SMs from the next sequence while it waits for its receiver
            last.append(out[:, -1])
        y = torch.cat(last)
        dist.broadcast(y, ranks - 1)
        return y

    return step
