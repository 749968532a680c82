"""The prompt of a new request, beside the decode step of others: nanochat's layers over all its tokens at once."""

import torch

from common.models.decoder import fused_attention, hidden_states, logits


def flat(weights):
    """The weights by their full names, as the decoder of `common` takes them; nothing is copied."""
    blocks = {f"layers.{i}.{name}": weight for i, block in enumerate(weights["blocks"]) for name, weight in block.items()}
    return {"embedding": weights["embedding"], "head": weights["head"]} | blocks


def prefill(config, prompt, weights, cache):
    """Logits behind the prompt's last token, [vocabulary]. Writes keys and values, [layers, 2, tokens, heads, dim]."""

    def attend(layer, q, k, v):
        cache[layer, 0], cache[layer, 1] = k, v
        return fused_attention(layer, q[None], k[None], v[None])[0]

    named = flat(weights)
    positions = torch.arange(len(prompt), device=prompt.device)
    return logits(named, config, hidden_states(named, config, prompt, positions, attend)[-1])
