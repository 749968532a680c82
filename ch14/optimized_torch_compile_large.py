"""Optimized: compiled: the same products, and half the bytes between."""
# predicts: baseline 11.4 ms = 49152 * (width / bf16 * ((8 * width + 6 * hidden) / 0.75 + 8192) + (56 * width + 10 * hidden) / dram_copy)
# predicts: optimized 10.4 ms = 49152 * (width / bf16 * ((8 * width + 6 * hidden) / 0.75 + 8192) + (24 * width + 6 * hidden) / dram_copy)
# proves: launches < 0.7 x baseline

import torch
from shared_decoder import Decoder


def prepare(x, weights, heads, tokens):
    decoder = torch.compile(Decoder(weights, heads, tokens))
    return lambda: decoder(x)
