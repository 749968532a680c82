"""MXFP4 as gpt-oss is published in: e2m1 values, two a byte, the first in the low bits, and a power of two for each 32 of a row."""

import math

import torch

BLOCK = 32
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
BIAS = 127  # of a scale: the factor is 2**(scale - 127)


def drawn(rand, *shape):
    """Random bytes and scales for weights of `shape`, which keep the size of what they multiply."""
    middle = BIAS - round(math.log2(3 * shape[-1] ** 0.5))  # e2m1 values have a root mean square of 3
    blocks = rand.integers(*shape[:-1], shape[-1] // 2, low=0, high=256, dtype=torch.uint8)
    return blocks, rand.integers(*shape[:-1], shape[-1] // BLOCK, low=middle - 1, high=middle + 2, dtype=torch.uint8)


def restored(blocks, scales, dtype):
    """Weights in `dtype`, [..., k], of bytes [..., k / 2] and scales [..., k / 32]; every value is one of bfloat16's."""
    values = torch.tensor([*VALUES, *(-value for value in VALUES)], dtype=dtype, device=blocks.device)
    both = torch.stack((values[(blocks & 15).int()], values[(blocks >> 4).int()]), dim=-1).flatten(-2)
    factors = torch.exp2((scales.int() - BIAS).to(dtype))
    return (both.unflatten(-1, (-1, BLOCK)) * factors[..., None]).flatten(-2)
