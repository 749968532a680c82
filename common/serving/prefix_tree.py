"""Known prefixes of prompts as a radix tree, an edge a run of tokens, over blocks of a pool (RadixAttention, arXiv:2312.07104)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from common.serving.kv_blocks import BlockPool


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """With how many tokens both begin."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class Node:
    """The tokens from position `start` on, behind those of its parents, and the blocks that hold them.

    The first of `blocks` is that of position `start`. Where this lies within a block, it is a copy, which holds the tokens before, too.
    """

    def __init__(self, start: int, tokens: list[int], blocks: list[int], parent: Node | None) -> None:
        self.start, self.tokens, self.blocks, self.parent = start, tokens, blocks, parent
        self.children: dict[int, Node] = {}  # by their first token
        self.used = 0  # when

    @property
    def end(self) -> int:
        """The position behind its last token."""
        return self.start + len(self.tokens)


class PrefixTree:
    """Prefixes of prompts, of which it holds the full blocks in `pool`, of `block_tokens` tokens each."""

    def __init__(self, pool: BlockPool, block_tokens: int) -> None:
        self._pool, self._size = pool, block_tokens
        self._root, self._clock = Node(0, [], [], None), 0

    def nodes(self) -> list[Node]:
        """All but the root, parents before children."""
        found = [*self._root.children.values()]
        for node in found:
            found.extend(node.children.values())
        return found

    def walk(self, tokens: Sequence[int]) -> tuple[Node, int, list[int]]:
        """The last node that `tokens` enter, how many of them are known, and the blocks that hold those. What it meets is used now."""
        self._clock += 1
        node, known, blocks = self._root, 0, list[int]()
        while known == node.end and known < len(tokens) and (child := node.children.get(tokens[known])):
            node = child
            node.used, known = self._clock, known + shared(node.tokens, tokens[known:])
            blocks = (blocks[: node.start // self._size] + node.blocks)[: -(-known // self._size)]
        return node, known, blocks

    def insert(self, tokens: Sequence[int], table: Sequence[int]) -> None:
        """Remember the full blocks of `tokens`, which `table` names in their order, so far as they are not known yet."""
        full = len(tokens) // self._size * self._size
        node, known, _ = self.walk(tokens[:full])
        if known == full:
            return
        if known < node.end:
            node = self._split(node, known)
        leaf = Node(known, list(tokens[known:full]), list(table[known // self._size : full // self._size]), node)
        leaf.used, node.children[tokens[known]] = self._clock, leaf
        for block in leaf.blocks:
            self._pool.share(block)

    def _split(self, node: Node, at: int) -> Node:
        """A new parent, of the tokens before position `at`. If a block has tokens of both, both hold it."""
        assert node.parent is not None
        cut, first = at - node.start, node.start // self._size
        upper = Node(node.start, node.tokens[:cut], node.blocks[: -(-at // self._size) - first], node.parent)
        upper.used, upper.children[node.tokens[cut]] = node.used, node
        node.parent.children[node.tokens[0]] = upper
        node.start, node.tokens, node.blocks, node.parent = at, node.tokens[cut:], node.blocks[at // self._size - first :], upper
        if at % self._size:
            self._pool.share(node.blocks[0])
        return upper

    def spare(self) -> set[int]:
        """Blocks that nobody but the tree holds: what evicting all of it would free, at the most."""
        held = Counter(block for node in self.nodes() for block in node.blocks)
        return {block for block, nodes in held.items() if self._pool.holders(block) == nodes}

    def evict(self) -> bool:
        """Forget the least recently used leaf whose last block nobody else holds; False where there is none."""
        spare = self.spare()
        leaves = [node for node in self.nodes() if not node.children and node.blocks[-1] in spare]
        if not leaves:
            return False
        leaf = min(leaves, key=lambda node: node.used)
        assert leaf.parent is not None
        del leaf.parent.children[leaf.tokens[0]]
        for block in leaf.blocks:
            self._pool.drop(block)
        return True
