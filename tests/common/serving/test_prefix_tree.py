"""The radix tree against a plain set of prefixes: what it finds, which blocks it says, what it evicts, and that none are lost."""

import random

import pytest

from common.serving.kv_blocks import BlockPool
from common.serving.prefix_tree import PrefixTree

BLOCK = 16


class Held:
    """A tree over a pool, and what each block was filled with."""

    def __init__(self, blocks):
        self.pool = BlockPool(blocks)
        self.tree = PrefixTree(self.pool, BLOCK)
        self.content = {}

    def serve(self, tokens):
        """Answer a prompt as a request would: take what is known, compute the rest, remember it. How many tokens were known."""
        _, known, found = self.tree.walk(tokens[:-1])
        for position, block in enumerate(found):
            upto = min(known, (position + 1) * BLOCK)
            assert self.content[block][: upto - position * BLOCK] == tokens[position * BLOCK : upto]
            self.pool.share(block)
        whole = known // BLOCK
        own = self.pool.take(-(-len(tokens) // BLOCK) - whole)
        table = found[:whole] + own
        for position, block in enumerate(table):
            if position >= whole:
                self.content[block] = tokens[position * BLOCK : (position + 1) * BLOCK]
        self.tree.insert(tokens, table)
        for block in [*found, *own]:
            self.pool.drop(block)
        return known

    def require_counted(self):
        """Each block is free or held once by each node that names it."""
        named = [block for node in self.tree.nodes() for block in node.blocks]
        assert len(set(named)) + self.pool.free == len(self.pool._holders)
        assert all(self.pool.holders(block) == named.count(block) for block in set(named))
        assert self.tree.spare() == set(named)


def prompt(*parts):
    return [token for start, count in parts for token in range(start, start + count)]


def test_a_prefix_is_found_to_the_token():
    held = Held(40)
    assert held.serve(prompt((0, 100))) == 0
    assert held.serve(prompt((0, 41), (900, 30))) == 41
    assert held.serve(prompt((0, 41), (900, 20), (500, 10))) == 41 + 20
    assert held.serve(prompt((0, 100))) == 96  # what is known ends with the last full block
    held.require_counted()


def test_the_last_token_is_never_taken():
    held = Held(10)
    held.serve(prompt((0, 32)))
    assert held.serve(prompt((0, 32))) == 31


def test_the_least_recently_used_leaf_goes_first_and_prefixes_stay():
    held = Held(40)
    for branch in (100, 200, 300):
        held.serve(prompt((0, 48), (branch, 32)))
    held.serve(prompt((0, 48), (100, 32)))
    held.tree.evict()
    assert held.serve(prompt((0, 48), (200, 32))) == 48
    assert held.serve(prompt((0, 48), (100, 32))) == 48 + 31
    held.require_counted()


def test_what_a_request_holds_is_not_evicted():
    held = Held(10)
    held.serve(prompt((0, 32)))
    (leaf,) = held.tree.nodes()
    held.pool.share(leaf.blocks[-1])
    assert not held.tree.evict()
    assert len(held.tree.spare()) == 1


@pytest.mark.parametrize("seed", range(20))
def test_random_prompts_find_the_longest_known_prefix(seed):
    rng = random.Random(seed)
    held, known = Held(400), set()
    for _ in range(60):
        tokens = [rng.randrange(2) for _ in range(rng.randint(2, 60))]
        own = next(n for n in range(len(tokens) - 1, -1, -1) if n == 0 or tuple(tokens[:n]) in known)
        assert held.serve(tokens) == own
        full = len(tokens) // BLOCK * BLOCK
        known |= {tuple(tokens[:n]) for n in range(1, full + 1)}
        held.require_counted()
    while held.tree.nodes():
        held.tree.evict()
        held.require_counted()
    assert held.pool.free == 400
