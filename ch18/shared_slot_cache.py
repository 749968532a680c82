"""Keys and values of a fixed number of sequences (slots), written and masked by tensors: a step may be captured in a CUDA graph."""

import torch

from common.models.decoder import hidden_states, logits
from common.serving.step import masked_attention


class SlotCache:
    """`keys` and `values` [layers, slots, capacity, kv heads, dim] of one model. What is not masked in is never read."""

    def __init__(self, weights, config, slots, capacity, device):
        shape = (config.layers, slots, capacity, config.kv_heads, config.head_dim)
        self.weights, self.config = weights, config
        self.keys, self.values = (torch.zeros(shape, dtype=config.dtype, device=device) for _ in range(2))

    def step(self, tokens, positions, places, seen, rows):
        """Logits [slots, queries, vocabulary] behind `tokens`; all are [slots, queries], and `seen` [slots, queries, capacity].

        `places` are where the tokens' keys and values go; `rows` [slots, 1] are the slots' numbers.
        """

        def attend(layer, q, k, v):
            self.keys[layer][rows, places], self.values[layer][rows, places] = k, v
            keys, values = (cache[layer][rows[:, 0]] if len(rows) < cache.shape[1] else cache[layer] for cache in (self.keys, self.values))
            return masked_attention(q, keys, values, seen, self.config.score_dim**-0.5)

        return logits(self.weights, self.config, hidden_states(self.weights, self.config, tokens, positions, attend))

    def prefill(self, slot, prompt):
        """Logits [1, vocabulary] behind a prompt, int64 [tokens], which becomes the slot's content."""
        at = torch.arange(self.keys.shape[2], device=prompt.device)
        positions = at[None, : len(prompt)]
        return self.step(prompt[None], positions, positions, positions[..., None] >= at, at[slot : slot + 1, None])[:, -1]

    def move(self, sources, targets, rows):
        """Copy keys and values from places `sources` to `targets`, [slots, tokens] each."""
        for cache in (self.keys, self.values):
            cache[:, rows, targets] = cache[:, rows, sources]
