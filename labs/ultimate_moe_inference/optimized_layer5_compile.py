"""Optimized: compiled: norms, rotations and SwiGLU are fused."""
# predicts: baseline 0.826 ms = layers * (1.1e9 / dram_read + 54 * 1.2e-6) + 35.7e6 / dram_read on h100    (1.2 us a kernel in a graph)
# predicts: optimized 0.768 ms = layers * (1.1e9 / dram_read + 30 * 1.2e-6) + 35.7e6 / dram_read on h100    (30 kernels a layer)
# proves: graph_nodes < 0.8 x baseline

import torch
from shared_attention import caches_of, fused
from shared_experts import grouped, unpacked
from shared_gpt_oss import config_of, decode

from common.graph import captured


def prepare(x, weights, packed, chosen, keys, values, layers, hidden, heads, experts):
    config = config_of(layers, hidden, heads, experts)
    caches, turn = caches_of(config, keys, values)
    attend, mixture = fused(config, weights, caches), grouped(config, unpacked(packed, x.dtype))
    compiled = torch.compile(decode, fullgraph=True, dynamic=False)
    return captured(lambda: compiled(config, x, weights, turn, chosen, attend, mixture))
