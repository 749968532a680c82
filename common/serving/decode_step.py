"""A decode step whose shapes and tensors never change, over paged keys and values: what a CUDA graph can hold."""

from __future__ import annotations

from collections.abc import Hashable

import torch

from common.models.config import Config
from common.models.decoder import hidden_states, logits, values_of
from common.models.layers import Weights, visible
from common.serving.kv_blocks import KvBlocks
from common.serving.step import masked_attention


class DecodeStep:
    """The next token of up to `slots` sequences, each of at most `longest` tokens, in tensors that stay where they are.

    `tokens` and `positions` are int64 [slots]; `logits` [slots, vocabulary] are what `tokens` were chosen from. A sequence must have
    reserved its blocks up to `longest` before it enters. A free slot computes on a spare block, and what it says is of no use.
    """

    def __init__(self, weights: Weights, config: Config, blocks: KvBlocks, slots: int, longest: int) -> None:
        device = blocks.keys.device
        (self._spare,) = blocks.pool.take(1)
        self._weights, self._config, self._blocks = weights, config, blocks
        self._taken = torch.zeros(slots, dtype=torch.int64, device=device)
        self._tables = torch.full((slots, -(-longest // blocks.block_tokens)), self._spare, dtype=torch.int64, device=device)
        self.tokens = torch.zeros(slots, dtype=torch.int64, device=device)
        self.positions = torch.zeros(slots, dtype=torch.int64, device=device)
        self.logits = torch.zeros(slots, config.vocabulary, dtype=weights["embedding"].dtype, device=device)

    def enter(self, slot: int, sequence: Hashable, token: torch.Tensor) -> None:
        """Put `sequence` into `slot`, with `token`, int64 [], as its next one. Raises ValueError where it has reserved too many blocks."""
        table = self._blocks.table(sequence)
        width = self._tables.shape[1]
        if len(table) > width:
            raise ValueError(f"sequence {sequence!r} has {len(table)} blocks; expected at most {width}")
        padded = [*table, *[self._spare] * (width - len(table))]
        self._tables[slot] = torch.tensor(padded, device=self._tables.device)
        self.positions[slot] = self._blocks.length(sequence)
        self.tokens[slot] = token
        self._taken[slot] = 1

    def leave(self, slot: int) -> None:
        """Free `slot`: its sequence's blocks may be given back."""
        self._tables[slot] = self._spare
        self.positions[slot] = 0
        self._taken[slot] = 0

    def run(self) -> None:
        """Append `tokens` to the caches, and put what comes next into `logits` and `tokens`. Nothing waits for the host."""
        size = self._blocks.block_tokens
        at = self._tables.gather(1, self.positions[:, None] // size)[:, 0] * size + self.positions % size

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None) -> torch.Tensor:
            keys = self._seen(self._blocks.keys[layer], at, k)
            values = values_of(self._config, keys) if v is None else self._seen(self._values(layer), at, v)
            mask = visible(self.positions[:, None], keys.shape[1], self._config.window_of(layer))
            sinks = self._weights.get(f"layers.{layer}.sinks")
            return masked_attention(q[:, None], keys, values, mask, self._config.score_dim**-0.5, sinks)[:, 0]

        x = hidden_states(self._weights, self._config, self.tokens, self.positions, attend)
        self.logits.copy_(logits(self._weights, self._config, x))
        self.tokens.copy_(self.logits.argmax(-1))
        self.positions += self._taken

    def _values(self, layer: int) -> torch.Tensor:
        assert self._blocks.values is not None
        return self._blocks.values[layer]

    def _seen(self, cache: torch.Tensor, at: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """[slots, keys, heads, dim] of a layer's cache, after `new` was written to the places `at`."""
        cache.flatten(0, 1).index_copy_(0, at, new.to(cache.dtype))
        return cache[self._tables].flatten(1, 2)
