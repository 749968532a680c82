"""Baseline: eager, expert after expert; the host waits for each."""
# allows: alloc, sync

from shared_attention import caches_of, repeated
from shared_experts import looped, unpacked
from shared_gpt_oss import config_of, decode


def prepare(x, weights, packed, chosen, keys, values, layers, hidden, heads, experts):
    config = config_of(layers, hidden, heads, experts)
    caches, turn = caches_of(config, keys, values)
    attend, mixture = repeated(config, weights, caches), looped(config, unpacked(packed, x.dtype))
    return lambda: decode(config, x, weights, turn, chosen, attend, mixture)
