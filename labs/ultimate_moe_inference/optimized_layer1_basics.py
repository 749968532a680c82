"""Optimized: the host never waits; experts are grouped products."""
# predicts: baseline 5.77 ms = layers * (38 * 2 * launch + 40e-6 + 21 * (14 * 2 * launch + 20e-6)) on h100  (14 operators, a wait)
# predicts: optimized 1.13 ms = layers * (1.1e9 / dram_read + 56 * 2e-6) + 677e6 / dram_copy on h100    (weights, kernels, copied cache)
# proves: calls cudaStreamSynchronize == 0
# proves: launches < 0.5 x baseline
# proves: kernel GroupProblemShape

from shared_attention import caches_of, repeated
from shared_experts import grouped, unpacked
from shared_gpt_oss import config_of, decode


def prepare(x, weights, packed, chosen, keys, values, layers, hidden, heads, experts):
    config = config_of(layers, hidden, heads, experts)
    caches, turn = caches_of(config, keys, values)
    attend, mixture = repeated(config, weights, caches), grouped(config, unpacked(packed, x.dtype))
    return lambda: decode(config, x, weights, turn, chosen, attend, mixture)
