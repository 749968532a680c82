"""FlexAttention, compiled: one kernel, in which the causal mask is a function of two positions."""

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

compiled = torch.compile(flex_attention)


def causal(batch, head, query, key):
    return query >= key


def prepare(q, k, v, tokens):
    mask = create_block_mask(causal, None, None, tokens, tokens, device=q.device.type)
    return lambda: compiled(q, k, v, block_mask=mask)
