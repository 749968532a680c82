"""Forward and backward of decoder blocks with attention written out: what a reference computes."""

import torch
from shared_decoder_block import block, leaves_of
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint


def plain_attention(q, k, v, is_causal):
    """Softmax of the scores of earlier tokens, written out, as a reference computes it."""
    future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    return (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(future, -torch.inf).softmax(dim=-1) @ v


def reference(x, weights, heads, loss_scale):
    """A sequence after the other, with checkpoints, so that all of it fits."""
    leaves, loss = leaves_of(weights), 0.0
    for sequence in x:
        stream = sequence[None]
        for layer in leaves:
            stream = checkpoint(block, stream, layer, heads, linear, plain_attention, use_reentrant=False)
        part = loss_scale * stream.square().sum() / x.numel()
        part.backward()
        loss += part.detach()
    return loss, *(w.grad for layer in leaves for w in layer)
