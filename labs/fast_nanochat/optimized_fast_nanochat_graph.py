"""Optimized: one graph launch starts all kernels."""
# predicts: baseline 4.53 ms = layers * 31 * 2 * launch on h100    (31 operators a layer, each two bare launches of host time: assumed)
# predicts: optimized 1.09 ms = (0.954e9 + 105e6) / dram_read + layers * 31 * 1.22e-6 on h100    (weights, cache, 1.2 us a kernel)
# proves: launches < 0.1 x baseline
# has: graph_nodes >= 40

from shared_nanochat import caches_of, config_of, decode

from common.graph import captured


def prepare(tokens, weights, keys, values, layers, hidden, vocabulary):
    config = config_of(layers, hidden, vocabulary)
    caches, turn = caches_of(config, keys, values)
    return captured(lambda: decode(config, tokens, weights, caches, turn))
