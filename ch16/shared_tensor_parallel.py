"""A rank's share of a decoder (Megatron's, arXiv:1909.08053): some heads and hidden units of each layer, some rows of the head."""

import torch

from common.models.layers import causal_attention

HEADS = ("q", "k", "v")  # their rows go head by head


def share_of(weights, rank, ranks):
    """Copies of this rank's rows or columns of each matrix, by name; `head` is its part of the tied embedding, which stays whole."""
    found = {"embedding": weights["embedding"], "head": weights["embedding"].chunk(ranks)[rank].clone()}
    for name, weight in weights.items():
        kind = name.rsplit(".", 1)[-1]
        if kind in HEADS:
            found[name] = weight.chunk(ranks)[rank].clone()
        elif kind == "gate_up":  # gates, then what they open
            found[name] = torch.cat([half.chunk(ranks)[rank] for half in weight.chunk(2)])
        elif kind in ("o", "down"):
            found[name] = weight.chunk(ranks, dim=1)[rank].contiguous()
    return found


def attend_to(cache, config):
    """Attention of the next token of each sequence over a DenseCache, to which it is added."""

    def attend(layer, q, k, v):
        end = cache.length + q.shape[1]
        cache.keys[layer, :, cache.length : end], cache.values[layer, :, cache.length : end] = k, v
        return causal_attention(q, cache.keys[layer, :, :end], cache.values[layer, :, :end], config.score_dim**-0.5, None, None)

    return attend
