"""Optimized: compiled: 9 kernels a layer instead of 18, half the bytes."""
# predicts@long: baseline 4.15 ms = 1.39e12 / (0.75 * bf16) + 0.155e12 / (0.5 * bf16) + 6.24e9 / dram_copy  (products, attention, bytes)
# predicts@long: optimized 3.41 ms = 1.39e12 / (0.75 * bf16) + 0.155e12 / (0.5 * bf16) + 3.02e9 / dram_copy
# predicts@short: baseline 1.58 ms = layers * 18 * 2 * launch  (an eager operator takes the host two bare launches: assumed)
# predicts@short: optimized 0.613 ms = layers * 9 * 1.3 * launch + 0.1e-3  (1.3 bare launches a kernel, 0.1 ms of guards: assumed)
# proves: launches < 0.7 x baseline

import torch
from shared_decoder import Decoder


def prepare(x, weights, heads, tokens):
    decoder = torch.compile(Decoder(weights, heads, tokens))
    return lambda: decoder(x)
