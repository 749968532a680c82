"""Baseline: each rank runs its part of expert after expert, eager."""
# allows: alloc, sync

from shared_attention import caches_of, repeated
from shared_experts import looped, unpacked
from shared_gpt_oss import config_of
from shared_tensor_parallel import decode, halves, share_of


def prepare(x, weights, packed, chosen, keys, values, rank, ranks, layers, hidden, heads, experts):
    config = share_of(config_of(layers, hidden, heads, experts), rank, ranks)
    caches, turn = caches_of(config, keys, values)
    attend, mixture = repeated(config, weights, caches), looped(config, unpacked(packed, x.dtype))
    parts = halves(config, weights, turn, chosen, attend, mixture)
    return lambda: decode(layers, x, parts)
