"""Optimized: compiled, FP8, and one graph launch for all kernels."""
# predicts: baseline 1.29 ms = layers * 22 * 2 * launch on h100    (an eager operator takes the host two bare launches: assumed)
# predicts: optimized 0.389 ms = 487e6 / dram_read + 134e6 / dram_read + layers * 12 * 2e-6 on h100    (weights, cache, 2 us a kernel)
# proves: launches < 0.1 x baseline
# has: graph_nodes >= 40

import torch
from shared_llama import decode, turn_at

from common.graph import captured
from common.models.e4m3 import linear, packed


def prepare(x, weights, caches, heads, context):
    caches = [(keys.clone(), values.clone()) for keys, values in caches]
    turn, weights = turn_at(context, x.shape[1] // heads, x), [packed(layer) for layer in weights]
    compiled = torch.compile(decode, fullgraph=True, dynamic=False)
    return captured(lambda: compiled(x, weights, caches, turn, heads, linear))
