"""SIMULATION, not a measurement: a front routes requests to many engines, as common/serving/engines.py does, in discrete events.

An engine here does what `engines._serve` does: each step takes new prompts into free slots and one token more of every sequence that
runs, and a sequence leaves when the front's word arrives. Only a step's time is not real: it is linear in what the step holds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from common.serving.engines import Load

Choose = Callable[[int, Sequence[Load]], int]
"""A router: the engine that takes a prompt of so many tokens, by what the front knows of each."""


@dataclass(frozen=True)
class ServiceTimes:
    """What a step takes, and how long a message between the front and an engine is on its way, in seconds; `source` says whence."""

    step_s: float
    prompt_token_s: float
    sequence_s: float
    message_s: float
    source: str

    def seconds(self, prompt_tokens: int, decoding: int) -> float:
        """Of a step that prefills so many tokens and decodes one token of so many sequences."""
        return self.step_s + self.prompt_token_s * prompt_tokens + self.sequence_s * decoding


@dataclass(frozen=True)
class Wanted:
    """A request to come: when it is due, in seconds, the tokens of its prompt, and how many it asks for."""

    due_s: float
    prompt_tokens: int
    output_tokens: int


@dataclass
class Answered:
    """What became of a request: the engine that took it, and when the front had each of its tokens, in simulated seconds."""

    engine: int
    tokens_s: list[float] = field(default_factory=list)


@dataclass
class _Gpu:
    left: dict[int, tuple[float, Callable[[float], None]]] = field(default_factory=dict)  # of each step that runs: seconds, and what then
    since: float = 0.0
    changes: int = 0

    def advance(self, now: float) -> None:
        """Let the steps that run have their slices of the time until `now`."""
        passed = (now - self.since) / max(1, len(self.left))
        self.left = {key: (seconds - passed, ended) for key, (seconds, ended) in self.left.items()}
        self.since = now


@dataclass(eq=False)
class _Engine:
    waiting: dict[int, int] = field(default_factory=dict)  # tokens of a prompt, by request
    running: set[int] = field(default_factory=set)
    is_busy: bool = False


class Simulation:
    """A fleet of `engines`, each of `slots` sequences, behind a front that asks `choose`. One trace each.

    Each has a GPU; with `is_shared` all have one, whose time goes in equal slices to the engines whose steps run.
    """

    def __init__(self, choose: Choose, engines: int, slots: int, times: ServiceTimes, *, is_shared: bool = False) -> None:
        if engines < 1 or slots < 1:
            raise ValueError(f"engines={engines}, slots={slots}; expected at least one of each")
        self.loads = [Load() for _ in range(engines)]
        self._choose, self._slots, self._times = choose, slots, times
        self._engines = [_Engine() for _ in range(engines)]
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._count = 0
        self._gpus = [_Gpu() for _ in range(1 if is_shared else engines)]

    def serve(self, requests: Sequence[Wanted]) -> list[Answered]:
        """The requests' answers, in their order. The same requests and the same router's decisions give the same answers."""
        self._wanted, self._answers = requests, [Answered(-1) for _ in requests]
        for number, request in enumerate(requests):
            self._at(request.due_s, partial(self._arrive, number=number))
        while self._events:
            now, _, happens = heapq.heappop(self._events)
            happens(now)
        return self._answers

    def _at(self, when_s: float, happens: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (when_s, self._count, happens))
        self._count += 1

    def _arrive(self, now: float, number: int) -> None:
        """The front hands a request out; of its own doings it knows at once, of an engine's when the engine's message is there."""
        tokens = self._wanted[number].prompt_tokens
        chosen = self._choose(tokens, self.loads)
        load, engine = self.loads[chosen], self._engines[chosen]
        load.waiting, load.waiting_tokens = load.waiting + 1, load.waiting_tokens + tokens
        self._answers[number].engine = chosen

        def received(then: float) -> None:
            engine.waiting[number] = tokens
            self._step(then, engine)

        self._at(now + self._times.message_s, received)

    def _step(self, now: float, engine: _Engine) -> None:
        """The next step, unless one runs: prompts for free slots, and a token of all that run."""
        if engine.is_busy:
            return
        new = list(engine.waiting)[: self._slots - len(engine.running)]
        prompts = sum(engine.waiting.pop(number) for number in new)
        decoding = list(engine.running)
        if not new and not decoding:
            return
        engine.running.update(new)
        engine.is_busy = True

        def ended(then: float) -> None:
            engine.is_busy = False
            self._at(then + self._times.message_s, lambda later: self._answered(later, engine, new + decoding))
            self._step(then, engine)

        gpu = self._gpus[self._engines.index(engine) % len(self._gpus)]
        gpu.advance(now)
        gpu.left[id(engine)] = self._times.seconds(prompts, len(decoding)), ended
        self._slice(now, gpu)

    def _slice(self, now: float, gpu: _Gpu) -> None:
        """The end of the step that is done first, as long as no other begins on its GPU."""
        if not gpu.left:
            return
        gpu.changes += 1
        changes, first = gpu.changes, min(gpu.left, key=lambda key: gpu.left[key][0])
        seconds, ended = gpu.left[first]

        def passed(then: float) -> None:
            if gpu.changes != changes:  # another step began since
                return
            gpu.advance(then)
            del gpu.left[first]
            self._slice(then, gpu)
            ended(then)

        self._at(now + seconds * len(gpu.left), passed)

    def _answered(self, now: float, engine: _Engine, numbers: Sequence[int]) -> None:
        """The front has a token of each, and forgets those that are complete; what still comes of them is dropped."""
        for number in numbers:
            wanted, answer = self._wanted[number], self._answers[number]
            load = self.loads[answer.engine]
            if len(answer.tokens_s) == wanted.output_tokens:
                continue
            if not answer.tokens_s:
                load.waiting, load.waiting_tokens = load.waiting - 1, load.waiting_tokens - wanted.prompt_tokens
                load.running += 1
            answer.tokens_s.append(now)
            if len(answer.tokens_s) == wanted.output_tokens:
                load.running -= 1
                self._at(now + self._times.message_s, partial(_forget, engine=engine, number=number))


def _forget(_: float, *, engine: _Engine, number: int) -> None:
    """The front's word is there: the slot is free from the next step on."""
    engine.running.discard(number)
