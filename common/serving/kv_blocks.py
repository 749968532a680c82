"""Keys and values in blocks of a few tokens, which sequences take as they grow, share, and give back (arXiv:2309.06180)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch

from common.models.config import Config


class OutOfBlocks(Exception):
    """Too few free blocks; nothing was taken."""


class BlockPool:
    """Which of `count` blocks are free, and how many sequences hold each of the others. It has no memory of its own."""

    def __init__(self, count: int) -> None:
        self._free = list(range(count - 1, -1, -1))
        self._holders = [0] * count

    @property
    def free(self) -> int:
        """Blocks that nobody holds."""
        return len(self._free)

    def holders(self, block: int) -> int:
        """How many hold `block`."""
        return self._holders[block]

    def take(self, count: int) -> list[int]:
        """`count` free blocks, held once each. Raises OutOfBlocks, and takes none, where there are fewer."""
        if count > len(self._free):
            raise OutOfBlocks(f"found {len(self._free)} free blocks; expected {count}")
        blocks = [self._free.pop() for _ in range(count)]
        for block in blocks:
            self._holders[block] = 1
        return blocks

    def share(self, block: int) -> None:
        """One more holder of a block that is held. Raises ValueError for a free one."""
        if not self._holders[block]:
            raise ValueError(f"block {block} is free; expected one that is held")
        self._holders[block] += 1

    def drop(self, block: int) -> None:
        """One holder less; free after the last. Raises ValueError for a block that is free already."""
        if not self._holders[block]:
            raise ValueError(f"block {block} is free already; expected one that is held")
        self._holders[block] -= 1
        if not self._holders[block]:
            self._free.append(block)


class KvBlocks:
    """A pool with its memory, and a table of blocks a sequence, by any hashable name.

    `keys` are [layers, blocks, block_tokens, cached heads, cached dim], `values` alike; None for latent attention, whose values are the
    first elements of its keys. What a block holds beyond its sequence's length is whatever was there before.
    """

    def __init__(
        self, config: Config, *, blocks: int, device: torch.device | str, block_tokens: int = 16, dtype: torch.dtype | None = None
    ) -> None:
        shape = (config.layers, blocks, block_tokens, config.cached_heads, config.cached_dim)
        self.block_tokens = block_tokens
        self.pool = BlockPool(blocks)
        self.keys = torch.zeros(shape, dtype=dtype or config.dtype, device=device)
        self.values = None if config.latent else torch.zeros_like(self.keys)
        self._tables: dict[Hashable, list[int]] = {}
        self._lengths: dict[Hashable, int] = {}

    def __contains__(self, sequence: Hashable) -> bool:
        return sequence in self._tables

    def length(self, sequence: Hashable) -> int:
        """Tokens of `sequence` that are in the cache; 0 for one that is not known."""
        return self._lengths.get(sequence, 0)

    def table(self, sequence: Hashable) -> list[int]:
        """The blocks of `sequence` in the order of its tokens, those reserved included. Not to be changed."""
        return self._tables.get(sequence, [])

    def reserve(self, sequence: Hashable, tokens: int) -> bool:
        """Make sure of room for `tokens` in all, so that appending up to there cannot fail unless it is forked meanwhile.

        False, and nothing is taken, where blocks are too few.
        """
        try:
            self._hold(sequence, tokens)
        except OutOfBlocks:
            return False
        return True

    def append(self, sequence: Hashable, count: int) -> range:
        """Room for the next `count` tokens: their positions. A block that others hold, too, is copied before it is written.

        Raises OutOfBlocks, and changes nothing, where blocks are too few.
        """
        start = self.length(sequence)
        self._hold(sequence, start + count)
        self._lengths[sequence] = start + count
        return range(start, start + count)

    def fork(self, parent: Hashable, child: Hashable) -> None:
        """A new sequence `child` with the tokens of `parent`, in the same blocks. Raises ValueError for a name that is taken."""
        length = self._lengths[parent]
        self._adopt(child, self._tables[parent][: self._blocks_for(length)], length)

    def adopt(self, sequence: Hashable, blocks: Sequence[int]) -> None:
        """A new sequence that begins with the tokens of full `blocks`, which somebody holds. Raises ValueError for a name that is taken."""
        self._adopt(sequence, blocks, len(blocks) * self.block_tokens)

    def _adopt(self, sequence: Hashable, blocks: Sequence[int], length: int) -> None:
        if sequence in self._tables:
            raise ValueError(f"sequence {sequence!r} is known already; expected a new name")
        for block in blocks:
            self.pool.share(block)
        self._tables[sequence], self._lengths[sequence] = list(blocks), length

    def truncate(self, sequence: Hashable, length: int) -> None:
        """Forget the tokens from `length` on, as after rejected drafts. The blocks stay with the sequence."""
        if not 0 <= length <= self._lengths[sequence]:
            raise ValueError(f"length {length}; expected 0 to {self._lengths[sequence]}, the tokens of sequence {sequence!r}")
        self._lengths[sequence] = length

    def release(self, sequence: Hashable) -> None:
        """Give all blocks of `sequence` back. Raises KeyError for one that is not known, as after a second release.

        The next sequence takes them in the same order: blocks that followed one another still do.
        """
        for block in reversed(self._tables.pop(sequence)):
            self.pool.drop(block)
        self._lengths.pop(sequence, None)

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_tokens)

    def _hold(self, sequence: Hashable, tokens: int) -> None:
        """Blocks for `tokens`, of which those behind the length are this sequence's own."""
        table = self._tables.get(sequence, [])
        first = self.length(sequence) // self.block_tokens
        shared = [i for i in range(first, min(len(table), self._blocks_for(tokens))) if self.pool.holders(table[i]) > 1]
        taken = self.pool.take(len(shared) + max(0, self._blocks_for(tokens) - len(table)))
        self._tables[sequence] = table
        for position, block in zip(shared, taken, strict=False):
            self._copy(table[position], block)
            self.pool.drop(table[position])
            table[position] = block
        table.extend(taken[len(shared) :])
        self._lengths.setdefault(sequence, 0)

    def _copy(self, source: int, target: int) -> None:
        for tensor in (self.keys, self.values):
            if tensor is not None:
                tensor[:, target] = tensor[:, source]
