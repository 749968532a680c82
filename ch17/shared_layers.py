"""Layers of Llama-2-7B's form on hidden states, [sequences, tokens, hidden], and the keys and values that they leave."""

import torch
import torch.nn.functional as F

from common.models.decoder import attention
from common.models.layers import causal_attention, feed_forward, rms_norm, rotation


def new_cache(config, sequences, tokens, like):
    """Keys and values, [layers, 2, sequences, tokens, heads, dim]."""
    return like.new_empty(config.layers, 2, sequences, tokens, config.kv_heads, config.head_dim)


def run(weights, config, x, cache, start, computed=lambda layer: None):
    """All layers on x, whose first token stands at `start`: they append to `cache`. `computed(layer)` is called behind each append."""
    end = start + x.shape[1]

    def attend(layer, q, k, v):
        cache[layer, 0, :, start:end] = k
        cache[layer, 1, :, start:end] = v
        computed(layer)
        q, k, v = (part.transpose(1, 2) for part in (q, cache[layer, 0, :, :end], cache[layer, 1, :, :end]))
        return F.scaled_dot_product_attention(q, k, v, is_causal=start == 0).transpose(1, 2)

    return _layers(weights, config, x, start, attend)


def reference_run(weights, config, x):
    """The same from plain arithmetic, and the keys and values of each layer: y, [layers, 2, sequences, tokens, heads, dim]."""
    kept = []

    def attend(layer, q, k, v):
        kept.append(torch.stack((k, v)))
        return causal_attention(q, k, v, config.score_dim**-0.5)

    y = _layers(weights, config, x, 0, attend)
    return y, torch.stack(kept)


def _layers(weights, config, x, start, attend):
    weights = {f"layers.{layer}.{name}": tensor for layer, each in enumerate(weights) for name, tensor in each.items()}
    turn = rotation(config, torch.arange(start, start + x.shape[1], device=x.device), x.dtype)
    for layer in range(config.layers):
        x = x + attention(weights, config, layer, rms_norm(x, None, config.norm_eps), turn, attend)
        x = x + feed_forward(weights, config, layer, rms_norm(x, None, config.norm_eps))
    return x
