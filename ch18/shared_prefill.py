"""The prompt of a new request, and random weights, for a model of Llama's widths."""

import torch

from common.models.config import Config
from common.models.decoder import fused_attention, hidden_states, logits, shapes


def config_of(layers, hidden):
    """Llama 3's proportions at that width: four query heads a key head, a feed-forward of 3.5 times the width; fewer tokens."""
    heads = hidden // 128
    sizes = {"heads": heads, "kv_heads": max(1, heads // 4), "head_dim": 128, "intermediate": hidden * 7 // 2}
    return Config(vocabulary=8 * hidden, hidden=hidden, layers=layers, **sizes)


def weights_of(config, rand):
    """Random weights that keep activations at unit scale; norms are near one."""
    moments = {
        name: {"mean": 1.0, "std": 0.1} if name.endswith("norm") else {"std": shape[-1] ** -0.5} for name, shape in shapes(config).items()
    }
    return {name: rand.normal(*shape, dtype=config.dtype, **moments[name]) for name, shape in shapes(config).items()}


def prefill(weights, config, tokens, keys, values):
    """Logits behind the last of `tokens`, [vocabulary]. Writes keys and values, [layers, tokens, kv heads, dim]."""

    def attend(layer, q, k, v):
        keys[layer], values[layer] = k, v
        return fused_attention(layer, q[None], k[None], v[None])[0]

    positions = torch.arange(len(tokens), device=tokens.device)
    return logits(weights, config, hidden_states(weights, config, tokens, positions, attend)[-1])
