"""A layer's pages are gathered, and sent as one message."""
# proves: launches in nccl < 0.5 x baseline

import torch
from shared_blocks import exchanged


def prepare(pool, table, places, rank):
    layers, count, page = len(pool), len(table), pool.shape[2]
    landed = torch.empty((2, layers, count, page), dtype=pool.dtype, device=pool.device)

    def step():
        for layer in range(layers):
            gathered = pool[layer].index_select(0, table)
            landed[1 - rank, layer].index_copy_(0, places, exchanged(gathered, 1 - rank))
        landed[rank].index_copy_(1, places, pool.index_select(1, table))
        return landed.flatten(0, 1)

    return step
