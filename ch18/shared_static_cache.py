"""How a sequence's newest key and value enter a cache with room for all tokens it may get."""

import torch


def append(k, v, keys, values, lengths):
    """Write k and v, [sequences, kv heads, 1, dim], at position length - 1 of the caches, [sequences, kv heads, capacity, dim]."""
    sequence = torch.arange(len(lengths), device=lengths.device)
    for cache, new in ((keys, k), (values, v)):
        cache[sequence, :, lengths - 1] = new[:, :, 0]
