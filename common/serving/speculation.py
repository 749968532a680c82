"""Speculation in rounds on the device: draft a tree of tokens, compute the target's choice behind each, keep the path that agrees.

A tree has `depth` levels of `width` tokens; width 1 is a chain, and depth 0 is decoding without drafts. Nothing in a round waits for the
host, and all shapes are fixed, so on a GPU a round is captured in one CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from common.graph import captured
from common.serving.slot_cache import Model, SlotCache


@dataclass(frozen=True)
class Size:
    """How many sequences there are, how many tokens each may have, and the tree of a round."""

    slots: int
    capacity: int
    depth: int
    width: int = 1

    @property
    def nodes(self) -> int:
        """The newest token and its drafts."""
        return 1 + self.depth * self.width


class Rounds:
    """The state of the slots' sequences: tokens in the caches (`length`), the newest, which is not in them (`last`), the one before it."""

    def __init__(self, target: Model, draft: Model, size: Size, device: torch.device) -> None:
        self._size = size
        capacity = size.capacity + size.nodes + size.depth
        self._target, self._draft = (SlotCache(model, size.slots, capacity, device) for model in (target, draft))
        self._last, self._before, self._active = (torch.zeros(size.slots, dtype=torch.int64, device=device) for _ in range(3))
        self._length = torch.ones_like(self._last)
        self._rows, self._at = torch.arange(size.slots, device=device)[:, None], torch.arange(capacity, device=device)
        self._next = captured(self._round) if device.type == "cuda" else self._round

    def admit(self, slot: int, prompt: torch.Tensor) -> torch.Tensor:
        """Read a prompt into a slot: logits [1, vocabulary] behind it, whose likeliest token becomes the newest one."""
        logits = self._target.prefill(slot, prompt)
        if self._size.depth:
            self._draft.prefill(slot, prompt)
        self._length[slot], self._last[slot], self._before[slot], self._active[slot] = len(prompt), logits.argmax(), prompt[-1], 1
        return logits

    def release(self, slot: int) -> None:
        """The slot idles: its rounds change nothing."""
        self._active[slot], self._length[slot] = 0, 1

    def next(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Tokens [slots, depth + 1], how many of them count, [slots], and the logits that they are the likeliest of."""
        return self._next()

    def _round(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        tokens, parents, ancestors = self._drafted()
        levels = ancestors.sum(2) - 1
        places = self._length[:, None] + self._at[: self._size.nodes]
        logits = self._target.step(tokens, self._length[:, None] + levels, places, self._seen(ancestors), self._rows)
        choices = logits.argmax(-1)
        path = self._agreed(tokens, parents, choices)
        counts = ((levels.gather(1, path[:, -1:])[:, 0] + 1) * self._active).contiguous()
        for cache in (self._target, self._draft) if self._size.depth else ():
            cache.move(self._length[:, None] + path[:, 1:], places[:, :1] + self._at[1 : self._size.depth + 1], self._rows)
        self._before.copy_(tokens.gather(1, path[:, -1:])[:, 0])
        self._last.copy_(choices.gather(1, path[:, -1:])[:, 0])
        self._length += counts
        return choices.gather(1, path), counts, logits[self._rows, path]

    def _seen(self, ancestors: torch.Tensor) -> torch.Tensor:
        """[slots, queries, capacity]: what the cache holds, and each node's `ancestors`, [slots, queries, nodes]."""
        behind = self._at - self._length[:, None]
        inside = ((behind >= 0) & (behind < ancestors.shape[2]))[:, None]
        index = behind.clamp(0, ancestors.shape[2] - 1)[:, None].expand(-1, ancestors.shape[1], -1)
        return (behind < 0)[:, None] | inside & ancestors.gather(2, index)

    def _drafted(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Tokens and parents [slots, nodes] of a tree, and each node's ancestors with itself, [slots, nodes, nodes]."""
        width, length = self._size.width, self._length[:, None]
        tokens, parents = [self._last[:, None]], [torch.zeros_like(self._last)[:, None]]
        own = torch.eye(self._size.nodes, dtype=torch.bool, device=self._last.device).expand(self._size.slots, -1, -1)
        ancestors, scores, first = own[:, :1], torch.zeros_like(self._last, dtype=torch.float32)[:, None], 0
        for level in range(self._size.depth):
            if level == 0:  # the token before the newest may be a draft that its model has not read
                positions = length + self._at[:2] - 1
                fed, places, visible = torch.stack((self._before, self._last), 1), positions, positions[..., None] >= self._at
            else:
                first = 1 + (level - 1) * width
                fed, places = tokens[-1], length + self._at[first : first + width]
                positions, visible = (length + level).expand_as(fed), self._seen(ancestors[:, first:])
            likely = self._draft.step(fed, positions, places, visible, self._rows).float().log_softmax(-1)
            likely = likely[:, -scores.shape[1] :] + scores[..., None]
            scores, best = likely.flatten(1).topk(width)
            parent = best // likely.shape[2] + first
            tokens.append(best % likely.shape[2])
            parents.append(parent)
            new = 1 + level * width
            ancestors = torch.cat((ancestors, ancestors[self._rows, parent] | own[:, new : new + width]), 1)
        return torch.cat(tokens, 1), torch.cat(parents, 1), ancestors

    def _agreed(self, tokens: torch.Tensor, parents: torch.Tensor, choices: torch.Tensor) -> torch.Tensor:
        """The nodes, [slots, depth + 1], from the root along the children that are the target's choice; the last one is repeated."""
        node, path = torch.zeros_like(self._last)[:, None], []
        alive = torch.ones_like(node, dtype=torch.bool)
        for level in range(self._size.depth):  # the child, if any, that is the target's choice behind its parent
            path.append(node)
            children = slice(1 + level * self._size.width, 1 + (level + 1) * self._size.width)
            agrees = (parents[:, children] == node) & (tokens[:, children] == choices.gather(1, node)) & alive
            alive = agrees.any(1, keepdim=True)
            node = torch.where(alive, agrees.int().argmax(1, keepdim=True) + children.start, node)
        return torch.cat((*path, node), 1)


class Clients(NamedTuple):
    """Where requests come from and answers go, as common/docs/serving.md says; `report` is told the tokens per round of each trace."""

    arrivals: Any
    emit: Callable[[Sequence[Any], Any, torch.Tensor], set[int]]
    report: Callable[[float], None]


def server(target: Model, draft: Model, size: Size, clients: Clients, device: torch.device | str) -> Callable[[], None]:
    """A step that serves a trace of requests in rounds."""
    arrivals, emit, report = clients
    rounds = Rounds(target, draft, size, torch.device(device))
    depth = size.depth

    def admitted(waiting: list[Any], running: dict[int, Any]) -> None:
        for slot in [slot for slot in range(size.slots) if slot not in running][: len(waiting)]:
            request = running[slot] = waiting.pop(0)
            logits = rounds.admit(slot, torch.tensor(request.prompt, device=device))
            if emit([request], logits.argmax(-1), logits):
                rounds.release(slot)
                del running[slot]

    def answered(running: dict[int, Any]) -> int:
        """One round for all that run: how many tokens it got."""
        tokens, counts, logits = rounds.next()
        tokens, counts = torch.cat((tokens, counts[:, None]), 1).cpu().split((depth + 1, 1), 1)
        for position in range(depth + 1):  # a token at a time, for an answer may be complete before its last accepted one
            some = [slot for slot in running if position < counts[slot]]
            done = emit([running[slot] for slot in some], tokens[some, position].tolist(), logits[some, position]) if some else ()
            for slot in [slot for slot in some if running[slot].id in done]:
                rounds.release(slot)
                del running[slot]
        return int(counts.sum())

    def serve() -> None:
        waiting, running, emitted, steps = arrivals.wait(), dict[int, Any](), 0, 0
        while waiting or running:
            admitted(waiting, running)
            if running:
                steps += len(running)
                emitted += answered(running)
            waiting += arrivals.poll() if waiting or running else arrivals.wait()
        report(emitted / max(steps, 1))

    return serve
