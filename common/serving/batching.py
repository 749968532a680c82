"""Continuous batching over paged keys and values. A step takes a token of all that decode, and as much of prompts as a budget allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from common.models.config import Config
from common.models.layers import Weights
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

_BLOCK = 16  # tokens


class Request(Protocol):
    """What a server reads of a request."""

    @property
    def id(self) -> int:
        """Its number in the trace."""

    @property
    def prompt(self) -> Sequence[int]:
        """The tokens to answer, at least one."""


class Arrivals(Protocol):
    """Where requests come from."""

    def poll(self) -> Sequence[Request]:
        """Those that came since the last call."""

    def wait(self) -> Sequence[Request]:
        """The same, once there is one; none when none will come any more."""


Emit = Callable[[Sequence[Request], torch.Tensor, torch.Tensor], set[int]]
Budget = Callable[[int], int | None]


def everything(decoding: int) -> None:
    """The budget of a step without one: whole prompts."""
    del decoding


def ignored(tokens: int) -> None:
    """What is done after a step by who wants nothing of it."""
    del tokens


def plan(waiting: Sequence[int], budget: int | None) -> list[int]:
    """How many tokens of each sequence a step takes, for those it has left: one of all that decode, then chunks of prompts in order.

    A sequence with one token left decodes. Chunks have at most `budget` tokens together; None takes all.
    """
    left = sum(waiting) if budget is None else budget
    counts = []
    for count in waiting:
        counts.append(1 if count == 1 else min(count, left))
        left -= counts[-1] if count > 1 else 0
    return counts


class Batcher:
    """An engine of `slots` sequences with at most `longest_context` tokens each. It decodes greedily."""

    def __init__(self, weights: Weights, config: Config, slots: int, longest_context: int, device: torch.device) -> None:
        self._weights, self._config, self._slots, self._device = weights, config, slots, device
        self._blocks = KvBlocks(config, blocks=slots * -(-longest_context // _BLOCK), block_tokens=_BLOCK, device=device)

    def serve(self, arrivals: Arrivals, emit: Emit, budget: Budget = everything, stepped: Callable[[int], None] = ignored) -> None:
        """Answer one trace of requests.

        Before each step `budget(decoding)` says how many tokens of prompts it takes, None for all; at least 1 where nothing decodes. After
        it `stepped(tokens)` is told how many tokens it computed. The device may still be at it: who times steps must wait for it.
        """
        waiting, running = list(arrivals.wait()), list[Request]()
        tokens: dict[int, torch.Tensor] = {}  # what each running sequence has yet to compute
        while waiting or running:
            free = self._slots - len(running)
            running, waiting = running + waiting[:free], waiting[free:]
            for request in running:
                if request.id not in tokens:
                    tokens[request.id] = torch.tensor(request.prompt, device=self._device)
            left = [len(tokens[request.id]) for request in running]
            counts = plan(left, budget(left.count(1)))
            answered, rows = self._step(running, counts, tokens)
            if answered:
                chosen = rows.argmax(-1)
                done = emit(answered, chosen, rows)
                tokens |= {request.id: token for request, token in zip(answered, chosen.split(1), strict=True)}
                for request_id in done:
                    self._blocks.release(request_id)
                    del tokens[request_id]
                running = [request for request in running if request.id not in done]
            stepped(sum(counts))
            waiting += arrivals.poll() if waiting or running else arrivals.wait()

    def _step(
        self, running: Sequence[Request], counts: Sequence[int], tokens: dict[int, torch.Tensor]
    ) -> tuple[list[Request], torch.Tensor]:
        """Compute the first `counts` of the `tokens` of each, which keep the rest: who has none left, and the logits behind these."""
        chunks: dict[int, torch.Tensor] = {}
        answered, rows = [], []
        for request, count in zip(running, counts, strict=True):
            whole = len(tokens[request.id])
            if count == whole:
                answered.append(request)
                rows.append(len(chunks))
                chunks[request.id] = tokens[request.id]
            elif count:
                chunks[request.id], tokens[request.id] = tokens[request.id].split((count, whole - count))
        logits = step(self._weights, self._config, self._blocks, list(chunks), list(chunks.values()))
        return answered, logits if len(rows) == len(chunks) else logits[rows]
