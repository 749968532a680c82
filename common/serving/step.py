"""One forward over a batch in which some sequences prefill a chunk and others decode a token, over paged keys and values."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from common.models.config import Config
from common.models.decoder import FeedForward, hidden_states, logits, values_of
from common.models.layers import Weights, feed_forward, visible
from common.serving.kv_blocks import KvBlocks

_UNPLANNED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Attention whose kernels take any shape. cuDNN's are planned for each shape anew, and a batch's shape changes all the time."""


def step(
    weights: Weights,
    config: Config,
    blocks: KvBlocks,
    sequences: Sequence[Hashable],
    chunks: Sequence[torch.Tensor],
    feed: FeedForward = feed_forward,
) -> torch.Tensor:
    """Append a chunk of tokens, int64 [at least 1], to every sequence: logits behind the last one, [sequences, vocabulary].

    Raises OutOfBlocks where the pool has too few blocks; the sequences before that one have been appended to then.
    """
    batch = Batch(blocks, sequences, [len(chunk) for chunk in chunks])
    return batch.forward(weights, config, torch.cat(list(chunks)), feed)


def step_over_all(
    weights: Weights, config: Config, blocks: KvBlocks, sequences: Sequence[Hashable], chunks: Sequence[torch.Tensor]
) -> torch.Tensor:
    """The same, but logits behind every token of the chunks, in their order: [tokens, vocabulary]. Drafts are verified so."""
    batch = Batch(blocks, sequences, [len(chunk) for chunk in chunks])
    return batch.forward(weights, config, torch.cat(list(chunks)), every=True)


@dataclass(frozen=True)
class _Group:
    """Sequences whose queries are padded to the longest chunk, and their keys to the longest context.

    `rows` [sequences, queries] says which of the batch's tokens each query is, `at` its position; padding repeats token 0 at position 0.
    `tables` [sequences, blocks]. `taken` are the queries that are no padding, in the order of `tokens`, where they lie in the batch.
    """

    rows: torch.Tensor
    at: torch.Tensor
    tables: torch.Tensor
    taken: torch.Tensor
    tokens: torch.Tensor


class Batch:
    """Where the tokens of one step go and what they see, worked out on the host and sent to the device in one copy."""

    def __init__(self, blocks: KvBlocks, sequences: Sequence[Hashable], counts: Sequence[int]) -> None:
        self._blocks = blocks
        positions = [blocks.append(sequence, count) for sequence, count in zip(sequences, counts, strict=True)]
        tables = [blocks.table(sequence) for sequence in sequences]
        plan = _Plan()
        flat = [at for each in positions for at in each]
        self._positions = plan.add([flat])
        self._slots = plan.add([[slot for each, table in zip(positions, tables, strict=True) for slot in _slots(blocks, each, table)]])
        starts = [0, *torch.tensor(counts).cumsum(0).tolist()]
        self._last = plan.add([[end - 1 for end in starts[1:]]])
        decodes = [i for i, count in enumerate(counts) if count == 1]
        prefills = [i for i, count in enumerate(counts) if count > 1]
        self._grouped = [
            _planned(plan, blocks, [positions[i] for i in members], [tables[i] for i in members], [starts[i] for i in members])
            for members in (decodes, prefills)
            if members
        ]
        self._plan = plan
        self._masks: dict[tuple[int, int | None], torch.Tensor] = {}

    def forward(
        self, weights: Weights, config: Config, tokens: torch.Tensor, feed: FeedForward = feed_forward, *, every: bool = False
    ) -> torch.Tensor:
        """Logits behind each sequence's last token, [sequences, vocabulary], for the batch's `tokens`, [tokens]; or behind `every` one."""
        sent = self._plan.sent(tokens.device)
        positions, slots, last = (sent[i][0] for i in (self._positions, self._slots, self._last))
        groups = [
            _Group(sent[rows], sent[at], sent[tables], sent[taken][0], sent[places][0]) for rows, at, tables, taken, places in self._grouped
        ]

        def attend(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None) -> torch.Tensor:
            keys, values = self._written(config, layer, slots, k, v)
            sinks = weights.get(f"layers.{layer}.sinks")
            out = q.new_empty((*q.shape[:-1], values.shape[-1]))
            for number, group in enumerate(groups):
                seen = self._mask(number, group, config.window_of(layer))
                answer = masked_attention(
                    q[group.rows], _gathered(keys, group), _gathered(values, group), seen, config.score_dim**-0.5, sinks
                )
                out.index_copy_(0, group.tokens, answer.flatten(0, 1)[group.taken])
            return out

        with sdpa_kernel(_UNPLANNED):
            x = hidden_states(weights, config, tokens, positions, attend, feed)
        return logits(weights, config, x if every else x[last])

    def _written(
        self, config: Config, layer: int, slots: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of `layer`, [blocks, block_tokens, heads, dim], with those of the batch in their slots."""
        keys = self._blocks.keys[layer]
        keys.flatten(0, 1).index_copy_(0, slots, k.to(keys.dtype))
        if self._blocks.values is None or v is None:
            return keys, values_of(config, keys)
        values = self._blocks.values[layer]
        values.flatten(0, 1).index_copy_(0, slots, v.to(values.dtype))
        return keys, values

    def _mask(self, number: int, group: _Group, window: int | None) -> torch.Tensor:
        """[sequences, queries, keys], the same for all layers of that window."""
        if (number, window) not in self._masks:
            self._masks[number, window] = visible(group.at, group.tables.shape[1] * self._blocks.block_tokens, window)
        return self._masks[number, window]


class _Plan:
    """Integer tables of a step, collected on the host, so that one copy takes them all to the device."""

    def __init__(self) -> None:
        self._values: list[int] = []
        self._shapes: list[tuple[int, int]] = []

    def add(self, rows: Sequence[Sequence[int]]) -> int:
        """Keep a table of equally long rows; its number."""
        for row in rows:
            self._values.extend(row)
        self._shapes.append((len(rows), len(rows[0])))
        return len(self._shapes) - 1

    def sent(self, device: torch.device) -> list[torch.Tensor]:
        """The tables on `device`, int64 [rows, columns] each."""
        host = torch.tensor(self._values, dtype=torch.int64, pin_memory=device.type == "cuda")
        parts = host.to(device, non_blocking=True).split([rows * columns for rows, columns in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]


def _slots(blocks: KvBlocks, positions: range, table: Sequence[int]) -> list[int]:
    size = blocks.block_tokens
    return [table[at // size] * size + at % size for at in positions]


def _planned(
    plan: _Plan, blocks: KvBlocks, positions: Sequence[range], tables: Sequence[Sequence[int]], starts: Sequence[int]
) -> tuple[int, int, int, int, int]:
    """The numbers of a group's tables, in the order of `_Group`."""
    queries = max(len(each) for each in positions)
    used = [-(-each.stop // blocks.block_tokens) for each in positions]
    rows = [[start + i if i < len(each) else 0 for i in range(queries)] for start, each in zip(starts, positions, strict=True)]
    at = [[*each, *[0] * (queries - len(each))] for each in positions]
    padded = [[*table[:count], *[0] * (max(used) - count)] for table, count in zip(tables, used, strict=True)]
    taken = [number * queries + i for number, each in enumerate(positions) for i in range(len(each))]
    tokens = [start + i for start, each in zip(starts, positions, strict=True) for i in range(len(each))]
    return plan.add(rows), plan.add(at), plan.add(padded), plan.add([taken]), plan.add([tokens])


def _gathered(cache: torch.Tensor, group: _Group) -> torch.Tensor:
    """[sequences, keys, heads, dim] of a layer's cache."""
    return cache[group.tables].flatten(1, 2)


def masked_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor, scale: float, sinks: torch.Tensor | None = None
) -> torch.Tensor:
    """Attention of q [batch, queries, heads, dim] over those of k and v [batch, keys, kv_heads, dim] that `seen` has, in torch's kernels.

    `seen` is [batch, queries, keys]. The query heads of a key head are queries like any others: keys are not repeated. Sinks are a key
    of zeros, which scores what the mask adds. Returns [batch, queries, heads, v's dim].
    """
    groups = q.shape[2] // k.shape[2]
    queries = q.unflatten(2, (-1, groups)).permute(0, 2, 3, 1, 4).flatten(2, 3)
    mask = seen[:, None, None].expand(-1, 1, groups, -1, -1)
    keys, values = k.transpose(1, 2), v.transpose(1, 2)
    if sinks is not None:
        keys, values = functional.pad(keys, (0, 0, 0, 1)), functional.pad(values, (0, 0, 0, 1))
        mask = _with_sinks(mask, sinks.to(q.dtype).view(-1, groups))
    answer = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask.flatten(2, 3), scale=scale)
    out: torch.Tensor = answer.unflatten(2, (groups, -1)).permute(0, 3, 1, 2, 4).flatten(2, 3)
    return out


def _with_sinks(seen: torch.Tensor, sinks: torch.Tensor) -> torch.Tensor:
    """What is added to scores: [batch, kv_heads, groups, queries, keys + 1]."""
    batch, _, groups, queries, keys = seen.shape
    bias = torch.zeros((batch, len(sinks), groups, queries, keys + 1), dtype=sinks.dtype, device=sinks.device)
    bias[..., :keys].masked_fill_(~seen, -math.inf)
    bias[..., keys] = sinks[None, :, :, None]
    return bias
