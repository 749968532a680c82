"""One decode step of a whole model over a static cache: each sequence appends a token. Nothing in it waits for the device."""

import torch

from common.models.decoder import hidden_states, logits
from common.models.layers import causal_attention
from common.serving.step import masked_attention


def decode(weights, config, keys, values, tokens, positions):
    """Logits behind one token a sequence, [sequences, vocabulary]. Sequence i's cache is row i of keys and values.

    keys and values [layers, slots, capacity, kv heads, dim], written at `positions`; tokens and positions int64 [sequences].
    """
    count, rows = len(tokens), torch.arange(len(tokens), device=tokens.device)
    seen = torch.arange(keys.shape[2], device=tokens.device) <= positions[:, None]

    def attend(layer, q, k, v):
        keys[layer, rows, positions], values[layer, rows, positions] = k, v
        cache = (keys[layer, :count], values[layer, :count])
        return masked_attention(q[:, None], *cache, seen[:, None], config.score_dim**-0.5)[:, 0]

    return logits(weights, config, hidden_states(weights, config, tokens, positions, attend))


def plain_decode(weights, config, keys, values, tokens, positions):
    """What `decode` returns, for one sequence of caches [layers, capacity, kv heads, dim], in plain arithmetic."""
    end = positions + 1

    def attend(layer, q, k, v):
        keys[layer, positions], values[layer, positions] = k[0], v[0]
        return causal_attention(q, keys[layer, :end], values[layer, :end], config.score_dim**-0.5)

    at = torch.tensor([positions], device=tokens.device)
    return logits(weights, config, hidden_states(weights, config, tokens.view(1), at, attend))[0]
