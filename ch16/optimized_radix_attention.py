"""A radix tree of prompts finds known prefixes to the token."""
# predicts: baseline output_tokens_per_s 971 = 1522 / (45600 * 1.51e9 / fp32_matmul + 198 * 1.1e-3) on h100  (all tokens, then steps)
# predicts: optimized output_tokens_per_s 1771 = 1522 / (21670 * 1.51e9 / fp32_matmul + 198 * 1.1e-3) on h100  (0.525 known: simulated)

from collections import Counter

import torch

from common import Metric
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

BLOCK = 16  # tokens


def shared(one, other):
    """With how many tokens both begin."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class Node:
    """The tokens from position `start` on, behind those of its parents, and the blocks that hold them, from block start // BLOCK on.

    Where `start` lies within a block, `blocks` begins with a copy of that block, which holds the tokens before, too.
    """

    def __init__(self, start, tokens, blocks, parent):
        self.start, self.tokens, self.blocks, self.parent = start, tokens, blocks, parent
        self.children, self.used = {}, 0  # by their first token; when it was last used

    @property
    def end(self):
        return self.start + len(self.tokens)


class RadixTree:
    """Prefixes of prompts, an edge a run of tokens that no other prompt leaves, over blocks of a pool (arXiv:2312.07104)."""

    def __init__(self, pool):
        self.pool, self.root, self.clock = pool, Node(0, [], [], None), 0

    def nodes(self):
        """All but the root, parents before children."""
        found = [*self.root.children.values()]
        for node in found:
            found.extend(node.children.values())
        return found

    def walk(self, tokens):
        """The last node that `tokens` enter, how many tokens are known, and the blocks that hold them."""
        self.clock += 1
        node, known, blocks = self.root, 0, []
        while known == node.end and known < len(tokens) and (child := node.children.get(tokens[known])):
            node = child
            node.used, known = self.clock, known + shared(node.tokens, tokens[known:])
            blocks = (blocks[: node.start // BLOCK] + node.blocks)[: -(-known // BLOCK)]
        return node, known, blocks

    def insert(self, tokens, table):
        """Remember full blocks of `tokens`, of which `table` says where they are, so far as they are not known yet."""
        full = len(tokens) // BLOCK * BLOCK
        node, known, _ = self.walk(tokens[:full])
        if known < full:
            if known < node.end:
                self.split(node, known)
                node = node.parent
            leaf = Node(known, tokens[known:full], table[known // BLOCK : full // BLOCK], node)
            leaf.used, node.children[tokens[known]] = self.clock, leaf
            for block in leaf.blocks:
                self.pool.share(block)

    def split(self, node, at):
        """Cut a node's tokens at a position: a new parent takes those before. Both hold the block that the cut goes through."""
        cut, first = at - node.start, node.start // BLOCK
        upper = Node(node.start, node.tokens[:cut], node.blocks[: -(-at // BLOCK) - first], node.parent)
        upper.used, upper.children[node.tokens[cut]] = node.used, node
        node.parent.children[node.tokens[0]] = upper
        node.start, node.tokens, node.blocks, node.parent = at, node.tokens[cut:], node.blocks[at // BLOCK - first :], upper
        if at % BLOCK:
            self.pool.share(node.blocks[0])

    def spare(self):
        """Blocks that nobody but the tree holds: what evicting all of it would free, at the most."""
        held = Counter(block for node in self.nodes() for block in node.blocks)
        return {block for block, nodes in held.items() if self.pool.holders(block) == nodes}

    def evict(self):
        """Forget the least recently used leaf that no running request holds; False where there is none."""
        spare = self.spare()
        leaves = [node for node in self.nodes() if not node.children and node.blocks[-1] in spare]
        if not leaves:
            return False
        leaf = min(leaves, key=lambda node: node.used)
        del leaf.parent.children[leaf.tokens[0]]
        for block in leaf.blocks:
            self.pool.drop(block)
        return True


def prepare(weights, config, slots, blocks, arrivals, emit, report, device):
    cache = KvBlocks(config, blocks=blocks, block_tokens=BLOCK, device=device)
    tree = RadixTree(cache.pool)

    def has_room(sequence, tokens):
        """Reserve `tokens`, of which it may have some; evict what that takes."""
        if -(-tokens // BLOCK) - cache.length(sequence) // BLOCK > cache.pool.free + len(tree.spare()):
            return False
        while not cache.reserve(sequence, tokens):  # copies the block that the prompt leaves the tree in
            if not tree.evict():  # a running request holds what lies behind the spare blocks
                return False
        return True

    def admit(request):
        """How many tokens are known, of the prompt but its last one, if there is room; None if not. A copy may take one block too many."""
        _, known, found = tree.walk(request.prompt[:-1])
        for taken in (known, known // BLOCK * BLOCK):
            cache.adopt(request.id, found[: -(-taken // BLOCK)])
            cache.truncate(request.id, taken)
            if has_room(request.id, len(request.prompt) + request.most_tokens):
                return taken
            cache.release(request.id)
        return None

    def serve():
        waiting, running, last, prompts, hits = arrivals.wait(), [], {}, [], 0
        while waiting or running:
            while waiting and len(running) < slots and (known := admit(waiting[0])) is not None:
                request = waiting.pop(0)
                running.append(request)
                last[request.id] = torch.tensor(request.prompt[known:], device=device)
                prompts, hits = [*prompts, request.prompt], hits + known
            new = [request for request in running if cache.length(request.id) < len(request.prompt)]
            logits = step(weights, config, cache, [request.id for request in running], [last[request.id] for request in running])
            done = emit(running, tokens := logits.argmax(-1), logits)
            for request in new:
                tree.insert(request.prompt, cache.table(request.id))
            last = {request.id: token for request, token in zip(running, tokens.split(1), strict=True)}
            for request_id in done:
                cache.release(request_id)
            running = [request for request in running if request.id not in done]
            waiting += arrivals.poll() if waiting or running else arrivals.wait()
        asked = sum(map(len, prompts))
        own = sum(max((shared(prompt[:-1], earlier) for earlier in prompts[:i]), default=0) for i, prompt in enumerate(prompts))
        report("hit_rate", Metric(hits / asked, "share of prompt tokens", "higher"))
        report("hit_rate_of_trace", Metric(own / asked, "share of prompt tokens", "higher"))  # all that comes twice, whenever

    return serve
