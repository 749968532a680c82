"""Optimized: keys and values lie still and are read once."""
# predicts: baseline 1.13 ms = layers * (1.1e9 / dram_read + 56 * 2e-6) + 677e6 / dram_copy on h100    (weights, kernels, copied cache)
# predicts: optimized 0.912 ms = layers * (1.1e9 / dram_read + 54 * 2e-6) + 35.7e6 / dram_read on h100    (the cache is read once)
# proves: launches < baseline
# proves: counter dram__bytes.sum < 0.9 x baseline

from shared_attention import caches_of, in_place
from shared_experts import grouped, unpacked
from shared_gpt_oss import config_of, decode


def prepare(x, weights, packed, chosen, keys, values, layers, hidden, heads, experts):
    config = config_of(layers, hidden, heads, experts)
    caches, turn = caches_of(config, keys, values)
    attend, mixture = in_place(config, weights, caches), grouped(config, unpacked(packed, x.dtype))
    return lambda: decode(config, x, weights, turn, chosen, attend, mixture)
