"""Engines in processes of their own, on one device, behind one front: it hands requests out and takes tokens back.

An engine batches continuously over paged keys and values, with a budget in chunks of prompts. A sequence leaves its slot when the front
forgets it. The front may move a sequence whose prompt has been answered: another engine copies its blocks and goes on. On a GPU the
engines read the same weights, and each other's blocks, by CUDA IPC, and the GPU runs their kernels by time slices; on a CPU they share
memory and cores.
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
from common.serving.batching import plan
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step
from common.serving.transfer import fetch

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
    """A step's answers: the engine, the front's names of requests, a token each, and the logits of each, [requests, vocabulary]."""

    engine: int
    names: list[Hashable]
    tokens: list[int]
    logits: torch.Tensor


@dataclass(frozen=True)
class _Prompt:
    """A new request's prompt. One that is `held` gets a single token, and keeps its slot and its blocks until it is forgotten."""

    tokens: list[int]
    held: bool


@dataclass(frozen=True)
class _Moved:
    """A request that goes on elsewhere: the engine that holds it, its blocks there, how many tokens they hold, and the token behind."""

    engine: int
    table: list[int]
    length: int
    token: int


@dataclass(frozen=True)
class Size:
    """How many sequences an engine holds, how many tokens each may have, and how many of prompts a step takes; None for whole prompts."""

    slots: int
    capacity: int
    budget: int | None = None


class Fleet:
    """The front of several engines. `loads` has one entry an engine, in their order. A call raises RuntimeError where one has died."""

    def __init__(self, ends: Sequence[Any], device: torch.device) -> None:
        self.loads = [Load() for _ in ends]
        self._ends = list(ends)
        self._device = device
        self._known: dict[int, tuple[Hashable, int, int]] = {}  # name, engine, tokens of a prompt without an answer, by ticket
        self._tickets: dict[Hashable, int] = {}
        self._held: dict[int, _Moved] = {}
        self._left: dict[int, int] = {}  # by ticket, the engine whose blocks are still being copied
        self._next = 0

    def send(self, engine: int, name: Hashable, prompt: Sequence[int], *, held: bool = False) -> None:
        """Queue a request at an engine; if it is `held`, for its first token only, until it is moved or forgotten.

        Its name must be of no other request that is not forgotten.
        """
        ticket, self._next = self._next, self._next + 1
        self._known[ticket], self._tickets[name] = (name, engine, len(prompt)), ticket
        load = self.loads[engine]
        load.waiting, load.waiting_tokens = load.waiting + 1, load.waiting_tokens + len(prompt)
        self._tell(engine, ticket, _Prompt(list(prompt), held))

    def move(self, name: Hashable, engine: int) -> None:
        """Have another engine go on with a held request, from a copy of its blocks. Raises ValueError for one that has no token yet."""
        ticket = self._tickets[name]
        if ticket not in self._held:
            raise ValueError(f"request {name!r} is not held, or has no token yet; expected one that was sent with held=True")
        moved = self._held.pop(ticket)
        self.loads[moved.engine].running -= 1
        self.loads[engine].running += 1
        self._known[ticket], self._left[ticket] = (name, engine, 0), moved.engine
        self._tell(engine, ticket, moved)

    def forget(self, name: Hashable) -> None:
        """Have the engine give the slot of a request back, which has at least one token."""
        ticket = self._tickets.pop(name)
        _, engine, _ = self._known.pop(ticket)
        self._held.pop(ticket, None)
        self.loads[engine].running -= 1
        self._tell(engine, ticket, None)
        self._copied(ticket)

    def poll(self, seconds: float) -> Iterator[Said]:
        """What engines have said since the last call, after at most `seconds` where none has. Raises RuntimeError where one has died."""
        ready: list[Any] = connection.wait(self._ends, seconds)
        for end in ready:
            engine = self._ends.index(end)
            try:
                tickets, tokens, raw, tables = end.recv()
            except (EOFError, ConnectionError) as error:
                raise _died(engine) from error
            kept = [row for row, ticket in enumerate(tickets) if ticket in self._known]  # the others were forgotten meanwhile
            if not kept:
                continue
            for row in kept:
                self._answered(tickets[row])
                if tickets[row] in tables:
                    table, length = tables[tickets[row]]
                    self._held[tickets[row]] = _Moved(engine, table, length, tokens[row])
            logits = torch.frombuffer(bytearray(raw), dtype=torch.float32).view(len(tickets), -1)[kept]
            names = [self._known[tickets[row]][0] for row in kept]
            yield Said(engine, names, [tokens[row] for row in kept], _sent(logits, self._device))

    def _tell(self, engine: int, ticket: int, what: _Prompt | _Moved | None) -> None:
        try:
            self._ends[engine].send((ticket, what))
        except ConnectionError as error:
            raise _died(engine) from error

    def _copied(self, ticket: int) -> None:
        """The engine that a request has left may use its blocks again, for what the other says of it rests on the copy."""
        if ticket in self._left:
            self._tell(self._left.pop(ticket), ticket, None)

    def _answered(self, ticket: int) -> None:
        self._copied(ticket)
        name, engine, tokens = self._known[ticket]
        if tokens:
            load = self.loads[engine]
            load.waiting, load.waiting_tokens, load.running = load.waiting - 1, load.waiting_tokens - tokens, load.running + 1
            self._known[ticket] = (name, engine, 0)


def _died(engine: int) -> RuntimeError:
    return RuntimeError(f"engine {engine} has died; expected it to answer")


def _sent(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Tensors of the host on `device`. A GPU that engines share gives the front time slices; from pinned memory nobody waits for one."""
    return (values.pin_memory() if device.type == "cuda" else values).to(device, non_blocking=True)


@contextmanager
def started(weights: Weights, config: Config, engines: int, size: Size, device: torch.device) -> Iterator[Fleet]:
    """`engines` processes of `size` each. They end with the block.

    Raises RuntimeError where one is not ready after two minutes.
    """
    shared = {name: tensor.clone() for name, tensor in weights.items()}  # in memory of torch's allocator, which processes can share
    pools = [KvBlocks(config, blocks=size.slots * -(-size.capacity // _BLOCK), block_tokens=_BLOCK, device=device) for _ in range(engines)]
    if device.type == "cuda":
        torch.cuda.synchronize()
    context: Any = torch.multiprocessing.get_context("spawn")
    ends, processes = [], []
    try:
        for number in range(engines):
            mine, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, shared, config, number, pools, size), daemon=True)
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


def _serve(end: Any, weights: Weights, config: Config, number: int, pools: Sequence[KvBlocks], size: Size) -> None:
    """The process of engine `number`, whose blocks are those of the pool of that number, until its front is gone."""
    blocks, device = pools[number], pools[number].keys.device
    if device.type == "cuda":
        os.sched_setaffinity(0, range(os.cpu_count() or 1))  # the front's core is its own
    torch.set_num_threads(1)
    waiting: dict[int, _Prompt | _Moved] = {}
    held, resting = set[int](), set[int]()  # those that shall rest behind their first token, and those that do
    left: dict[int, torch.Tensor] = {}  # what each sequence has yet to compute: the rest of its prompt, or its newest token
    end.send("ready")
    while True:
        while not (waiting or left) or end.poll():
            try:
                ticket, message = end.recv()
            except EOFError:
                return
            if message is not None:
                waiting[ticket] = message
            elif left.pop(ticket, None) is not None:
                blocks.release(ticket)
                held.discard(ticket)
                resting.discard(ticket)
            else:
                waiting.pop(ticket, None)
        for ticket in list(waiting)[: size.slots - len(left)]:
            new = waiting.pop(ticket)
            if isinstance(new, _Moved):
                fetch(blocks, ticket, pools[new.engine], new.table, new.length)
                left[ticket] = torch.tensor([new.token], device=device)
            else:
                left[ticket] = torch.tensor(new.tokens, device=device)
                held |= {ticket} if new.held else set()
        going = [ticket for ticket in left if ticket not in resting and blocks.length(ticket) < size.capacity]
        counts = plan([len(left[ticket]) for ticket in going], size.budget)
        chunks = {ticket: left[ticket][:count] for ticket, count in zip(going, counts, strict=True) if count}
        if not chunks:  # all are held or as long as they may be, and their end is on its way
            end.poll(None)
            continue
        logits = step(weights, config, blocks, list(chunks), list(chunks.values()))
        rows = [row for row, (ticket, chunk) in enumerate(chunks.items()) if len(chunk) == len(left[ticket])]
        left |= {ticket: left[ticket][len(chunk) :] for ticket, chunk in chunks.items()}
        if not rows:
            continue
        answered, logits = [list(chunks)[row] for row in rows], logits[rows]
        tokens = logits.argmax(-1)
        left |= dict(zip(answered, tokens.split(1), strict=True))
        tables = {ticket: (blocks.table(ticket), blocks.length(ticket)) for ticket in answered if ticket in held}
        resting |= set(tables)
        end.send((answered, tokens.tolist(), logits.float().cpu().numpy().tobytes(), tables))
