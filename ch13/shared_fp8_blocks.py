"""Blocks of values as e4m3 values with an FP32 scale each."""

import torch

BLOCK = 256  # values that share a scale
LARGEST = 448.0  # of e4m3


def quantized(values):
    """e4m3 values, as bytes, which every collective can move, blocks x BLOCK; and their scales, blocks x 1."""
    blocks = values.view(-1, BLOCK).float()
    scales = blocks.abs().amax(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny) / LARGEST
    return (blocks / scales).to(torch.float8_e4m3fn).view(torch.uint8), scales


def dequantized(values, scales):
    """The FP32 values that `quantized` took, rounded."""
    return values.view(torch.float8_e4m3fn).float() * scales
