"""A round of speculation on the device: draft a tree of tokens, compute the target's choice behind each, keep the path that agrees.

A tree has `depth` levels of `width` tokens; width 1 is a chain, and depth 0 is decoding without drafts. Nothing in a round waits for the
host, and all shapes are fixed, so on a GPU a round is captured in one CUDA graph.
"""

import torch
from shared_draft_tree import agreed, drafted, seen
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
        return (self.graph.replay(), self.answer)[1] if self.graph else self._round()

    def _round(self):
        tokens, parents, ancestors = drafted(self)
        levels = ancestors.sum(2) - 1
        places = self.length[:, None] + self.at[: self.nodes]
        logits = self.target.step(tokens, self.length[:, None] + levels, places, seen(self, ancestors), self.rows)
        choices = logits.argmax(-1)
        path = agreed(self, tokens, parents, choices)
        counts = ((levels.gather(1, path[:, -1:])[:, 0] + 1) * self.active).contiguous()
        for cache in (self.target, self.draft) if self.depth else ():
            cache.move(self.length[:, None] + path[:, 1:], places[:, :1] + self.at[1 : self.depth + 1], self.rows)
        self.before.copy_(tokens.gather(1, path[:, -1:])[:, 0])
        self.last.copy_(choices.gather(1, path[:, -1:])[:, 0])
        self.length += counts
        return choices.gather(1, path), counts, logits[self.rows, path]
