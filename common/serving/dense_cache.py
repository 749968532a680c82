"""Keys and values of a fixed batch of sequences in one tensor, a row of `capacity` tokens each."""

from __future__ import annotations

import torch

from common.models.config import Config
from common.models.decoder import hidden_states, logits, values_of
from common.models.layers import Weights, causal_attention


class DenseCache:
    """The cache of `sequences` that are all equally long. `keys` are [layers, sequences, capacity, cached heads, cached dim]."""

    def __init__(
        self, config: Config, *, sequences: int, capacity: int, device: torch.device | str, dtype: torch.dtype | None = None
    ) -> None:
        shape = (config.layers, sequences, capacity, config.cached_heads, config.cached_dim)
        self.capacity = capacity
        self.length = 0
        self.keys = torch.zeros(shape, dtype=dtype or config.dtype, device=device)
        self.values = None if config.latent else torch.zeros_like(self.keys)


def dense_step(weights: Weights, config: Config, cache: DenseCache, tokens: torch.Tensor) -> torch.Tensor:
    """Logits behind the next `tokens`, [sequences, count], of all sequences: [sequences, count, vocabulary].

    Raises ValueError where they exceed the cache's capacity.
    """
    end = cache.length + tokens.shape[1]
    if end > cache.capacity:
        raise ValueError(f"found {end} tokens; expected at most {cache.capacity}, the cache's capacity")

    def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None) -> torch.Tensor:
        cache.keys[layer, :, cache.length : end] = k
        keys = cache.keys[layer, :, :end]
        if cache.values is None or v is None:
            values = values_of(config, keys)
        else:
            cache.values[layer, :, cache.length : end] = v
            values = cache.values[layer, :, :end]
        sinks = weights.get(f"layers.{layer}.sinks")
        return causal_attention(q, keys, values, config.score_dim**-0.5, config.window_of(layer), sinks)

    positions = torch.arange(cache.length, end, device=tokens.device)
    scores = logits(weights, config, hidden_states(weights, config, tokens, positions, attend))
    cache.length = end
    return scores
