"""Engines in processes of their own, on one device, behind one front: it hands requests out and takes tokens back.

An engine batches continuously over paged keys and values. A sequence leaves its slot when the front forgets it. On a GPU the engines
read the same weights, by CUDA IPC, and the GPU runs their kernels by time slices; on a CPU they share memory and cores.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any

import torch

from common.models.config import Config
from common.models.layers import Weights
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

_READY_S = 120.0
_BLOCK = 16  # tokens


@dataclass
class Load:
    """What one engine has to do, as the front knows it: requests without a token yet, the tokens of their prompts, and the others."""

    waiting: int = 0
    waiting_tokens: int = 0
    running: int = 0


@dataclass(frozen=True)
class Said:
    """A step's answers: the front's names of requests, a token each, and the logits they were chosen from, [requests, vocabulary]."""

    names: list[Hashable]
    tokens: list[int]
    logits: torch.Tensor


class Fleet:
    """The front of several engines. `loads` has one entry an engine, in their order."""

    def __init__(self, ends: Sequence[Any], device: torch.device) -> None:
        self.loads = [Load() for _ in ends]
        self._ends = list(ends)
        self._device = device
        self._known: dict[int, tuple[Hashable, int, int]] = {}  # name, engine, tokens of a prompt without an answer, by ticket
        self._tickets: dict[Hashable, int] = {}
        self._next = 0

    def send(self, engine: int, name: Hashable, prompt: Sequence[int]) -> None:
        """Queue a request at an engine. Its name must be of no other request that is not forgotten."""
        ticket, self._next = self._next, self._next + 1
        self._known[ticket], self._tickets[name] = (name, engine, len(prompt)), ticket
        load = self.loads[engine]
        load.waiting, load.waiting_tokens = load.waiting + 1, load.waiting_tokens + len(prompt)
        self._ends[engine].send((ticket, list(prompt)))

    def forget(self, name: Hashable) -> None:
        """Have the engine give the slot of a request back, which has at least one token."""
        ticket = self._tickets.pop(name)
        _, engine, _ = self._known.pop(ticket)
        self.loads[engine].running -= 1
        self._ends[engine].send((ticket, None))

    def poll(self, seconds: float) -> Iterator[Said]:
        """What engines have said since the last call, after at most `seconds` where none has. Raises RuntimeError where one has died."""
        ready: list[Any] = connection.wait(self._ends, seconds)
        for end in ready:
            engine = self._ends.index(end)
            try:
                tickets, tokens, raw = end.recv()
            except (EOFError, ConnectionError) as error:
                raise RuntimeError(f"engine {engine} has died; expected it to answer") from error
            kept = [row for row, ticket in enumerate(tickets) if ticket in self._known]  # the others were forgotten meanwhile
            if not kept:
                continue
            for ticket in (tickets[row] for row in kept):
                self._answered(ticket)
            logits = torch.frombuffer(bytearray(raw), dtype=torch.float32).view(len(tickets), -1)[kept]
            yield Said([self._known[tickets[row]][0] for row in kept], [tokens[row] for row in kept], logits.to(self._device))

    def _answered(self, ticket: int) -> None:
        name, engine, tokens = self._known[ticket]
        if tokens:
            load = self.loads[engine]
            load.waiting, load.waiting_tokens, load.running = load.waiting - 1, load.waiting_tokens - tokens, load.running + 1
            self._known[ticket] = (name, engine, 0)


@contextmanager
def started(weights: Weights, config: Config, engines: int, slots: int, capacity: int, device: torch.device) -> Iterator[Fleet]:
    """`engines` processes of `slots` sequences each, of at most `capacity` tokens. They end with the block.

    Raises RuntimeError where one is not ready after two minutes.
    """
    shared = {name: tensor.clone() for name, tensor in weights.items()}  # in memory of torch's allocator, which processes can share
    if device.type == "cuda":
        torch.cuda.synchronize()
    context: Any = torch.multiprocessing.get_context("spawn")
    ends, processes = [], []
    try:
        for _ in range(engines):
            mine, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, shared, config, slots, capacity, device), daemon=True)
            process.start()
            theirs.close()
            ends.append(mine)
            processes.append(process)
        for number, end in enumerate(ends):
            if not end.poll(_READY_S) or end.recv() != "ready":
                raise RuntimeError(f"engine {number} is not ready after {_READY_S:g} s; expected its process to start")
        yield Fleet(ends, device)
    finally:
        for process in processes:
            process.kill()
            process.join()
        for end in ends:
            end.close()


def _serve(end: Any, weights: Weights, config: Config, slots: int, capacity: int, device: torch.device) -> None:
    """The process of an engine, until its front is gone."""
    if device.type == "cuda":
        os.sched_setaffinity(0, range(os.cpu_count() or 1))  # the front's core is its own
    torch.set_num_threads(1)
    blocks = KvBlocks(config, blocks=slots * -(-capacity // _BLOCK), block_tokens=_BLOCK, device=device)
    waiting: dict[int, torch.Tensor] = {}
    last: dict[int, torch.Tensor] = {}  # each running sequence's newest token
    end.send("ready")
    while True:
        while not (waiting or last) or end.poll():
            try:
                ticket, prompt = end.recv()
            except EOFError:
                return
            if prompt is not None:
                waiting[ticket] = torch.tensor(prompt, device=device)
            elif last.pop(ticket, None) is not None:
                blocks.release(ticket)
        new = list(waiting)[: slots - len(last)]
        chunks = [(ticket, waiting.pop(ticket)) for ticket in new]
        chunks += [(ticket, token) for ticket, token in last.items() if blocks.length(ticket) < capacity]
        if not chunks:  # all are as long as they may be, and their end is on its way
            end.poll(None)
            continue
        logits = step(weights, config, blocks, [ticket for ticket, _ in chunks], [chunk for _, chunk in chunks])
        tokens = logits.argmax(-1)
        last |= {ticket: token for (ticket, _), token in zip(chunks, tokens.split(1), strict=True)}
        end.send(([ticket for ticket, _ in chunks], tokens.tolist(), logits.float().cpu().numpy().tobytes()))
