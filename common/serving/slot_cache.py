"""Keys and values of a fixed number of sequences (slots), written and masked by tensors: a step may be captured in a CUDA graph."""

from __future__ import annotations

from typing import NamedTuple

import torch

from common.models.config import Config
from common.models.decoder import FeedForward, hidden_states, logits
from common.models.layers import Weights, feed_forward
from common.serving.step import masked_attention


class Model(NamedTuple):
    """Weights, their config, and what computes its feed-forwards."""

    weights: Weights
    config: Config
    feed: FeedForward = feed_forward


class SlotCache:
    """`keys` and `values` [layers, slots, capacity, kv heads, dim] of one model. What is not masked in is never read."""

    def __init__(self, model: Model, slots: int, capacity: int, device: torch.device) -> None:
        config = model.config
        shape = (config.layers, slots, capacity, config.kv_heads, config.head_dim)
        self._model = model
        self._keys, self._values = (torch.zeros(shape, dtype=config.dtype, device=device) for _ in range(2))

    def step(
        self, tokens: torch.Tensor, positions: torch.Tensor, places: torch.Tensor, seen: torch.Tensor, rows: torch.Tensor
    ) -> torch.Tensor:
        """Logits [slots, queries, vocabulary] behind `tokens`; all are [slots, queries], and `seen` [slots, queries, capacity].

        `places` are where the tokens' keys and values go; `rows` [slots, 1] are the slots' numbers.
        """
        weights, config, feed = self._model

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None) -> torch.Tensor:
            assert v is not None
            self._keys[layer][rows, places], self._values[layer][rows, places] = k, v
            keys, values = (
                cache[layer][rows[:, 0]] if len(rows) < cache.shape[1] else cache[layer] for cache in (self._keys, self._values)
            )
            return masked_attention(q, keys, values, seen, config.score_dim**-0.5)

        return logits(weights, config, hidden_states(weights, config, tokens, positions, attend, feed))

    def prefill(self, slot: int, prompt: torch.Tensor) -> torch.Tensor:
        """Logits [1, vocabulary] behind a prompt, int64 [tokens], which becomes the slot's content."""
        at = torch.arange(self._keys.shape[2], device=prompt.device)
        positions = at[None, : len(prompt)]
        return self.step(prompt[None], positions, positions, positions[..., None] >= at, at[slot : slot + 1, None])[:, -1]

    def move(self, sources: torch.Tensor, targets: torch.Tensor, rows: torch.Tensor) -> None:
        """Copy keys and values from places `sources` to `targets`, [slots, tokens] each."""
        for cache in (self._keys, self._values):
            cache[:, rows, targets] = cache[:, rows, sources]
