"""The block pool under any sequence of operations, against what a list a sequence would say."""

from dataclasses import replace

import pytest
import torch

from common.models import config as presets
from common.serving.kv_blocks import BlockPool, KvBlocks, OutOfBlocks

hypothesis = pytest.importorskip("hypothesis")
stateful = pytest.importorskip("hypothesis.stateful")
st = hypothesis.strategies

CONFIG = replace(presets.tiny(), layers=1, kv_heads=1, head_dim=1)
NAMES = st.integers(0, 5)


def blocks_of(count, block_tokens=4):
    return KvBlocks(CONFIG, blocks=count, block_tokens=block_tokens, device="cpu")


class Sequences(stateful.RuleBasedStateMachine):
    """Every token is written as a number of its own; what is read back must be what each sequence wrote or inherited."""

    def __init__(self):
        super().__init__()
        self.blocks = blocks_of(9)
        self.tokens: dict[int, list[float]] = {}
        self.reserved: dict[int, int] = {}
        self.next = 1.0

    @stateful.rule(name=NAMES, count=st.integers(1, 9))
    def append(self, name, count):
        free = self.blocks.pool.free
        try:
            positions = self.blocks.append(name, count)
        except OutOfBlocks:
            assert self.blocks.pool.free == free
            assert self.reserved.get(name, 0) < len(self.tokens.get(name, [])) + count
            return
        values = self.tokens.setdefault(name, [])
        assert list(positions) == list(range(len(values), len(values) + count))
        for position in positions:
            self.blocks.keys[0, self.blocks.table(name)[position // 4], position % 4] = self.next
            values.append(self.next)
            self.next += 1

    @stateful.rule(name=NAMES, tokens=st.integers(1, 30))
    def reserve(self, name, tokens):
        free = self.blocks.pool.free
        if self.blocks.reserve(name, tokens):
            self.tokens.setdefault(name, [])
            self.reserved[name] = max(tokens, self.reserved.get(name, 0))
        else:
            assert self.blocks.pool.free == free

    @stateful.rule(parent=NAMES, child=NAMES)
    def fork(self, parent, child):
        if parent not in self.tokens or child in self.tokens:
            return
        free = self.blocks.pool.free
        self.blocks.fork(parent, child)
        assert self.blocks.pool.free == free
        self.tokens[child] = list(self.tokens[parent])
        self.reserved.pop(parent, None)

    @stateful.rule(name=NAMES, share=st.floats(0, 1))
    def truncate(self, name, share):
        if name in self.tokens:
            length = int(share * len(self.tokens[name]))
            self.blocks.truncate(name, length)
            del self.tokens[name][length:]
            self.reserved.pop(name, None)

    @stateful.rule(name=NAMES)
    def release(self, name):
        if name in self.tokens:
            self.blocks.release(name)
            del self.tokens[name]
            self.reserved.pop(name, None)
        else:
            with pytest.raises(KeyError):
                self.blocks.release(name)

    @stateful.invariant()
    def every_sequence_reads_what_it_wrote(self):
        for name, values in self.tokens.items():
            assert self.blocks.length(name) == len(values)
            table = self.blocks.table(name)
            assert [self.blocks.keys[0, table[i // 4], i % 4].item() for i in range(len(values))] == values

    @stateful.invariant()
    def every_block_is_free_or_held_by_as_many_as_have_it(self):
        held = [block for name in self.tokens for block in self.blocks.table(name)]
        assert all(self.blocks.pool.holders(block) == held.count(block) for block in range(9))
        assert self.blocks.pool.free == 9 - len(set(held))


TestSequences = Sequences.TestCase
TestSequences.settings = hypothesis.settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_what_was_reserved_cannot_run_out():
    blocks = blocks_of(4)
    assert blocks.reserve("first", 9)
    assert not blocks.reserve("second", 5)
    assert blocks.reserve("second", 4)
    blocks.append("first", 5)
    blocks.append("first", 7)
    with pytest.raises(OutOfBlocks, match="found 0 free blocks; expected 1"):
        blocks.append("first", 1)
    assert blocks.length("first") == 12


def test_blocks_that_follow_one_another_still_do_for_the_next_sequence():
    blocks = blocks_of(6)
    for name in ("a", "b"):
        blocks.reserve(name, 12)
    blocks.release("a")
    blocks.release("b")
    for name in ("c", "d"):
        blocks.reserve(name, 12)
    assert sorted((blocks.table("c"), blocks.table("d"))) == [[0, 1, 2], [3, 4, 5]]


def test_a_second_release_is_an_error():
    blocks = blocks_of(2)
    blocks.append("a", 3)
    blocks.release("a")
    with pytest.raises(KeyError):
        blocks.release("a")
    assert blocks.pool.free == 2


def test_a_block_cannot_be_freed_twice():
    pool = BlockPool(2)
    (block,) = pool.take(1)
    pool.share(block)
    pool.drop(block)
    assert pool.free == 1
    pool.drop(block)
    with pytest.raises(ValueError, match=f"block {block} is free already"):
        pool.drop(block)
    with pytest.raises(ValueError, match=f"block {block} is free"):
        pool.share(block)


def test_blocks_taken_are_different():
    pool = BlockPool(8)
    assert sorted(pool.take(3) + pool.take(5)) == list(range(8))


def test_a_fork_shares_until_one_of_the_two_writes():
    blocks = blocks_of(4)
    blocks.append("parent", 6)
    blocks.keys[0, blocks.table("parent")[1], 1] = 7.0
    blocks.fork("parent", "child")
    assert blocks.table("child") == blocks.table("parent")
    blocks.append("child", 1)
    assert blocks.table("child")[0] == blocks.table("parent")[0]
    assert blocks.table("child")[1] != blocks.table("parent")[1]
    assert blocks.keys[0, blocks.table("child")[1], 1].item() == 7.0
    assert blocks.pool.free == 1


def test_a_name_that_is_taken_cannot_be_forked_to():
    blocks = blocks_of(4)
    blocks.append("a", 1)
    with pytest.raises(ValueError, match="sequence 'a' is known already"):
        blocks.fork("a", "a")


def test_latent_attention_keeps_one_tensor():
    latent = replace(presets.deepseek_mla(1), hidden=32, heads=2)
    blocks = KvBlocks(latent, blocks=2, device="cpu", dtype=torch.float32)
    assert blocks.values is None
    assert blocks.keys.shape == (1, 2, 16, 1, 576)


def test_adopted_blocks_are_held_by_both_and_written_by_neither():
    blocks = blocks_of(4)
    blocks.append("a", 8)
    blocks.adopt("b", blocks.table("a")[:1])
    assert blocks.length("b") == 4
    blocks.append("b", 1)
    assert blocks.table("b")[0] == blocks.table("a")[0]
    assert blocks.table("b")[1] not in blocks.table("a")
    blocks.release("a")
    blocks.release("b")
    assert blocks.pool.free == 4
    with pytest.raises(ValueError, match="block 0 is free"):
        blocks.adopt("c", [0])
    assert "c" not in blocks
