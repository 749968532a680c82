"""The prompt of a new request through a model of Llama's widths."""

import torch

from common.models.config import Config
from common.models.decoder import forward, fused_attention, hidden_states, logits


def config_of(layers, hidden):
    """Llama 3's proportions at that width: four query heads a key head, a feed-forward of 3.5 times the width; fewer tokens."""
    heads = hidden // 128
    sizes = {"heads": heads, "kv_heads": max(1, heads // 4), "head_dim": 128, "intermediate": hidden * 7 // 2}
    return Config(vocabulary=8 * hidden, hidden=hidden, layers=layers, **sizes)


def prefill(weights, config, tokens, keys, values):
    """Logits behind the last of `tokens`, [vocabulary]. Writes keys and values, [layers, tokens, kv heads, dim]."""

    def attend(layer, q, k, v):
        keys[layer], values[layer] = k, v
        return fused_attention(layer, q[None], k[None], v[None])[0]

    positions = torch.arange(len(tokens), device=tokens.device)
    return logits(weights, config, hidden_states(weights, config, tokens, positions, attend)[-1])


def plain_prefill(weights, config, tokens):
    """The same logits in plain arithmetic."""
    return forward(weights, config, tokens)[-1]
