"""A pre-norm transformer block without dropout: causal attention, then a GELU network of four times the width."""

import torch.nn.functional as F

NAMES = ("qkv", "out", "up", "down")  # the weights of a block, each a matrix of rows to apply


def sizes(width):
    """Rows and columns of each weight, by name."""
    return {"qkv": (3 * width, width), "out": (width, width), "up": (4 * width, width), "down": (width, 4 * width)}


def block(x, qkv, out, up, down, heads):
    """The residual stream behind a block; `x` is sequences x tokens x width."""
    sequences, tokens, width = x.shape
    split = F.linear(F.layer_norm(x, (width,)), qkv).view(sequences, tokens, 3, heads, width // heads)
    q, k, v = split.permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + F.linear(mixed.transpose(1, 2).reshape(x.shape), out)
    return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), up)), down)


def leaves_of(weights):
    """The weights of each block as tensors that autograd gives gradients of; they share the memory of `weights`."""
    return [tuple(layer[name].detach().requires_grad_() for name in NAMES) for layer in weights]
