"""Blocks of keys and values of idle conversations in pinned host memory, and of active ones in a pool on the device."""

from itertools import pairwise

import torch

from common.serving.kv_blocks import KvBlocks


class IdleBlocks:
    """`pool` has room for `seats` conversations. What their messages add lies in host memory of its own; histories stay as they are.

    `histories` are keys and values, [layers, conversations x blocks of one, block, heads, dim] each, in host memory.
    """

    def __init__(self, config, histories, device, *, conversations, context, added, seats):
        block = histories[0].shape[2]
        self._context = context
        self._clean = context // block  # blocks that no message writes to
        self._each = -(-(context + added) // block)
        self.pool = KvBlocks(config, blocks=seats * self._each, block_tokens=block, device=device)
        shape = (histories[0].shape[0], conversations, self._each - self._clean, *histories[0].shape[2:])
        self._histories = [history.unflatten(1, (conversations, -1)) for history in histories]
        self._tails = [torch.empty(shape, dtype=history.dtype, pin_memory=device.type == "cuda") for history in histories]

    def resume(self, conversation, length):
        """Copy the blocks of `conversation`, which has `length` tokens, to the device, in the current stream."""
        self.pool.reserve(conversation, self._each * self.pool.block_tokens)
        self.pool.append(conversation, length)
        used = self.pool.table(conversation)[: -(-length // self.pool.block_tokens)]
        old = self._clean if length > self._context else len(used)
        for into, history, tail in zip((self.pool.keys, self.pool.values), self._histories, self._tails, strict=True):
            for host, places in ((history, used[:old]), (tail, used[old:])):
                for here, there in in_pairs(into, places, host[:, conversation]):
                    here.copy_(there, non_blocking=True)

    def suspend(self, conversation):
        """Copy the blocks that messages wrote to back, in the current stream, and give all of them up."""
        used = -(-self.pool.length(conversation) // self.pool.block_tokens)
        places = self.pool.table(conversation)[self._clean : used]
        for source, tail in zip((self.pool.keys, self.pool.values), self._tails, strict=True):
            for here, there in in_pairs(source, places, tail[:, conversation]):
                there.copy_(here, non_blocking=True)
        self.pool.release(conversation)


def in_pairs(pool, places, host):
    """Views of the pool's blocks at `places`, and of a conversation's on the host, [layers, blocks, ...].

    A layer's blocks that follow one another in both are one pair, and so one copy: the host takes longer to queue a block's than it runs.
    """
    starts = [i for i, place in enumerate(places) if not i or place != places[i - 1] + 1]
    for start, end in pairwise([*starts, len(places)]):
        place = places[start]
        for layer, blocks in enumerate(host):
            yield pool[layer, place : place + end - start], blocks[start:end]
