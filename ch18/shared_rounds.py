"""A round of speculation on the device: draft a tree of tokens, compute the target's choice behind each, keep the path that agrees.

A tree has `depth` levels of `width` tokens; width 1 is a chain, and depth 0 is decoding without drafts. Nothing in a round waits for the
host, and all shapes are fixed, so on a GPU a round is captured in one CUDA graph.
"""

import torch
from shared_slot_cache import SlotCache


class Rounds:
    """The state of `slots` sequences: tokens in the caches (`length`), the newest, which is not in them (`last`), the one before it."""

    def __init__(self, target, draft, slots, capacity, depth, width, device):
        self.depth, self.width, self.nodes = depth, width, 1 + depth * width
        capacity += self.nodes + depth
        self.target, self.draft = (SlotCache(*model, slots, capacity, device) for model in (target, draft))
        self.last, self.before, self.active = (torch.zeros(slots, dtype=torch.int64, device=device) for _ in range(3))
        self.length = torch.ones_like(self.last)
        self.rows, self.at = torch.arange(slots, device=device)[:, None], torch.arange(capacity, device=device)
        self.graph = None
        if device.type == "cuda":
            for _ in range(2):  # the first calls allocate what later ones use
                self._round()
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.answer = self._round()

    def admit(self, slot, prompt):
        """Read a prompt into a slot: logits [1, vocabulary] behind it, whose likeliest token becomes the newest one."""
        logits = self.target.prefill(slot, prompt)
        if self.depth:
            self.draft.prefill(slot, prompt)
        self.length[slot], self.last[slot], self.before[slot], self.active[slot] = len(prompt), logits.argmax(), prompt[-1], 1
        return logits

    def release(self, slot):
        """The slot idles: its rounds change nothing."""
        self.active[slot], self.length[slot] = 0, 1

    def next(self):
        """Tokens [slots, depth + 1], how many of them count, [slots], and the logits that they are the likeliest of."""
        if self.graph is None:
            return self._round()
        self.graph.replay()
        return self.answer

    def _seen(self, ancestors):
        """[slots, queries, capacity]: what the cache holds, and each node's `ancestors`, [slots, queries, nodes]."""
        behind = self.at - self.length[:, None]
        inside = ((behind >= 0) & (behind < ancestors.shape[2]))[:, None]
        index = behind.clamp(0, ancestors.shape[2] - 1)[:, None].expand(-1, ancestors.shape[1], -1)
        return (behind < 0)[:, None] | inside & ancestors.gather(2, index)

    def _drafted(self):
        """Tokens and parents [slots, nodes] of a tree, and each node's ancestors with itself, [slots, nodes, nodes]."""
        tokens, parents = [self.last[:, None]], [torch.zeros_like(self.last)[:, None]]
        own = torch.eye(self.nodes, dtype=torch.bool, device=self.last.device).expand(len(self.last), -1, -1)
        ancestors, scores, first = own[:, :1], torch.zeros_like(self.last, dtype=torch.float32)[:, None], 0
        for level in range(self.depth):
            if level == 0:  # the token before the newest may be a draft that its model has not read
                positions = self.length[:, None] + self.at[:2] - 1
                fed, places, seen = torch.stack((self.before, self.last), 1), positions, positions[..., None] >= self.at
            else:
                first = 1 + (level - 1) * self.width
                fed, places = tokens[-1], self.length[:, None] + self.at[first : first + self.width]
                positions, seen = (self.length + level)[:, None].expand_as(fed), self._seen(ancestors[:, first:])
            likely = self.draft.step(fed, positions, places, seen, self.rows).float().log_softmax(-1)
            likely = likely[:, -scores.shape[1] :] + scores[..., None]
            scores, best = likely.flatten(1).topk(self.width)
            parent = best // likely.shape[2] + first
            tokens.append(best % likely.shape[2])
            parents.append(parent)
            new = 1 + level * self.width
            ancestors = torch.cat((ancestors, ancestors[self.rows, parent] | own[:, new : new + self.width]), 1)
        return torch.cat(tokens, 1), torch.cat(parents, 1), ancestors

    def _round(self):
        tokens, parents, ancestors = self._drafted()
        levels = ancestors.sum(2) - 1
        places = self.length[:, None] + self.at[: self.nodes]
        logits = self.target.step(tokens, self.length[:, None] + levels, places, self._seen(ancestors), self.rows)
        choices = logits.argmax(-1)
        node, alive, path = torch.zeros_like(self.last)[:, None], True, []
        for level in range(self.depth):  # the child, if any, that is the target's choice behind its parent
            path.append(node)
            children = slice(1 + level * self.width, 1 + (level + 1) * self.width)
            agrees = (parents[:, children] == node) & (tokens[:, children] == choices.gather(1, node)) & alive
            alive = agrees.any(1, keepdim=True)
            node = torch.where(alive, agrees.int().argmax(1, keepdim=True) + children.start, node)
        path = torch.cat((*path, node), 1)
        counts = ((levels.gather(1, node)[:, 0] + 1) * self.active).contiguous()
        said = choices.gather(1, path)
        if self.depth:
            for cache in (self.target, self.draft):
                cache.move(self.length[:, None] + path[:, 1:], places[:, :1] + self.at[1 : self.depth + 1], self.rows)
        self.before.copy_(tokens.gather(1, node)[:, 0])
        self.last.copy_(choices.gather(1, node)[:, 0])
        self.length += counts
        return said, counts, logits[self.rows, path]
