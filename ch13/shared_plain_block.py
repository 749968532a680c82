"""The block of shared_block.py on one sequence, with attention written out: what a reference computes in float64."""

import torch
import torch.nn.functional as F


def plain_block(x, qkv, out, up, down, heads):
    """The residual stream behind a block; `x` is tokens x width."""
    tokens, width = x.shape
    split = (F.layer_norm(x, (width,)) @ qkv.T).view(tokens, 3, heads, width // heads)
    q, k, v = split.permute(1, 2, 0, 3)
    future = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
    shares = (q @ k.mT * (width // heads) ** -0.5).masked_fill(future, -torch.inf).softmax(dim=-1)
    x = x + (shares @ v).transpose(0, 1).reshape(tokens, width) @ out.T
    return x + F.gelu(F.layer_norm(x, (width,)) @ up.T) @ down.T
