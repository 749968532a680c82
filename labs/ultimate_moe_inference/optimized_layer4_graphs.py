"""Optimized: one graph launch starts all kernels."""
# predicts: baseline 0.912 ms = layers * (1.1e9 / dram_read + 54 * 2e-6) + 35.7e6 / dram_read on h100    (as many kernels, few scores)
# predicts: optimized 0.826 ms = layers * (1.1e9 / dram_read + 54 * 1.2e-6) + 35.7e6 / dram_read on h100    (1.2 us a kernel in a graph)
# proves: launches < 0.1 x baseline
# has: graph_nodes >= 40

from shared_attention import caches_of, fused
from shared_experts import grouped, unpacked
from shared_gpt_oss import config_of, decode

from common.graph import captured


def prepare(x, weights, packed, chosen, keys, values, layers, hidden, heads, experts):
    config = config_of(layers, hidden, heads, experts)
    caches, turn = caches_of(config, keys, values)
    attend, mixture = fused(config, weights, caches), grouped(config, unpacked(packed, x.dtype))
    return captured(lambda: decode(config, x, weights, turn, chosen, attend, mixture))
