"""Baseline: one call of PyTorch's attention with a dense block-diagonal mask: every pair is multiplied, then most are thrown away."""

import torch
from torch.nn.functional import scaled_dot_product_attention


def prepare(q, k, v, document, window):
    at = torch.arange(len(document), device=document.device)
    behind = at[:, None] - at[None, :]
    seen = (document[:, None] == document[None, :]) & (behind >= 0) & (behind < window)

    def step():
        return scaled_dot_product_attention(q, k, v, attn_mask=seen)

    return step
