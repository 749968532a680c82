"""A model reads a text, a token a step, over dense keys and values: every step's logits. Sides capture all steps as one CUDA graph."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from common.models.decoder import hidden_states, logits


def reader(weights, config, tokens, feed, after=lambda scores: None):
    """A function that returns logits behind each of `tokens`, int64 [count], as [count, vocabulary] in the weights' dtype.

    `feed` multiplies by the feed-forward's weights; `after` gets each step's logits, [1, vocabulary], on the device.
    """
    count, device = len(tokens), tokens.device
    caches = torch.zeros(2, config.layers, config.kv_heads, count, config.head_dim, dtype=config.dtype, device=device)
    positions, out = torch.arange(count, device=device), torch.empty(count, config.vocabulary, dtype=config.dtype, device=device)

    def read():
        for at in range(count):

            def attend(layer, q, k, v, at=at):
                caches[0, layer, :, at], caches[1, layer, :, at] = k[0], v[0]
                keys, values = (cache[layer, None, :, : at + 1] for cache in caches)
                return scaled_dot_product_attention(q.transpose(0, 1)[None], keys, values, enable_gqa=True)[0].transpose(0, 1)

            one = slice(at, at + 1)
            scores = logits(weights, config, hidden_states(weights, config, tokens[one], positions[one], attend, feed))
            after(scores)
            out[one] = scores

    return read, out
