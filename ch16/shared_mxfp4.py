"""MXFP4 as gpt-oss is published in: e2m1 values, two a byte, the first in the low bits, and a power of two for each 32 of a row."""

import math

import torch

from common.block_formats import E8M0_BIAS, MX_BLOCK, mxfp4_restored

__all__ = ["drawn", "restored"]

restored = mxfp4_restored


def drawn(rand, *shape):
    """Random bytes and scales for weights of `shape`, which keep the size of what they multiply."""
    middle = E8M0_BIAS - round(math.log2(3 * shape[-1] ** 0.5))  # e2m1 values have a root mean square of 3
    blocks = rand.integers(*shape[:-1], shape[-1] // 2, low=0, high=256, dtype=torch.uint8)
    return blocks, rand.integers(*shape[:-1], shape[-1] // MX_BLOCK, low=middle - 1, high=middle + 2, dtype=torch.uint8)
