"""Optimized: compiled: the same products, and half the bytes between."""
# predicts: baseline 11.4 ms = 5.05e12 / (0.75 * bf16) + 0.412e12 / (0.5 * bf16) + 8.41e9 / dram_copy  (products, attention, bytes)
# predicts: optimized 10.4 ms = 5.05e12 / (0.75 * bf16) + 0.412e12 / (0.5 * bf16) + 4.08e9 / dram_copy
# proves: launches < 0.7 x baseline

import torch
from shared_decoder import Decoder


def prepare(x, weights, heads, tokens):
    decoder = torch.compile(Decoder(weights, heads, tokens))
    return lambda: decoder(x)
