"""The processes of one side, a rank each: asked as one, and answered for by one answer, in which the slowest rank is the side's time."""

from __future__ import annotations

import itertools
import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from common.python.processes import messages
from common.python.processes.fork_server import Child
from common.python.processes.messages import Answer, Request

T = TypeVar("T", bound=Answer)


def _all_of(lists: Sequence[Sequence[Any]]) -> list[Any]:
    return list(itertools.chain.from_iterable(lists))


def _slowest(samples: Sequence[Sequence[float]]) -> list[float]:
    """A sample is over when its last rank is."""
    return [max(ranks) for ranks in zip(*samples, strict=True)]


# How what several ranks say becomes what the side says; of a field or an answer that is not here, what rank 0 says.
_JOINED: Mapping[type[Answer], Mapping[str, Callable[[Sequence[Any]], Any]]] = {
    messages.Loaded: {"seconds": max},
    messages.Prepared: {"seconds": max},
    messages.Checked: {"calls": _all_of, "first_call_s": max},
    messages.Warmed: {
        "calls": max,
        "holds": all,
        "step_ns": max,
        "sample_ns": max,
        "call_s": max,
        "peak_memory_bytes": sum,
        "numa_nodes": lambda nodes: sorted(set(_all_of(nodes))),
    },
    messages.Timed: {
        "samples_ns": _slowest,
        "sm_clock_hz": _all_of,
        "queued_ns": max,
        "void": max,
        "picks": _all_of,
        "notes": lambda notes: list(dict.fromkeys(_all_of(notes))),
    },
}


def joined(answers: Sequence[T]) -> T:
    """One answer for those of all ranks, in their order; calls say whose they are. Raises ValueError if ranks timed different counts."""
    answers = [_signed(answer, rank, len(answers)) for rank, answer in enumerate(answers)]
    first = answers[0]
    fields = _JOINED.get(type(first), {})
    return first.model_copy(update={name: join([getattr(answer, name) for answer in answers]) for name, join in fields.items()})


def _signed(answer: T, rank: int, ranks: int) -> T:
    # By the parent, which knows whose socket it came from: no process can answer for another.
    lists = {messages.Checked: "calls", messages.Timed: "picks"}
    if (name := lists.get(type(answer))) is None:
        return answer
    whose = {"rank": rank, "ranks": ranks}
    return answer.model_copy(update={name: [call.model_copy(update=whose) for call in getattr(answer, name)]})


class RankGroup:
    """`children` are the processes of one side, in the order of their ranks."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = tuple(children)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with ExitStack() as closing:  # all of them, whatever one of them says at its end; each is told why, for Ctrl-C waits for none
            for child in self._children:
                closing.callback(child.__exit__, kind, error, trace)

    def __len__(self) -> int:
        return len(self._children)

    def begin(self, request: Request) -> None:
        """Ask every rank, without waiting."""
        for rank, child in enumerate(self._children):
            child.begin(request.for_rank(rank, len(self)))

    def finish(self, request: Request, expected: type[T], seconds: float) -> T:
        """The answer of all to what was begun; they are heard as they answer.

        Raises SideFailure with what the first to fail says; the others, who may be waiting for it, are killed.
        """
        deadline = time.monotonic() + seconds
        for child in self._children:
            child.resume()
        waiting = dict(enumerate(self._children))
        answers: dict[int, T] = {}
        with ExitStack() as at_the_end:
            at_the_end.callback(lambda: _kill(waiting.values()))  # of whom none is left, unless one failed
            while waiting:
                ready, _, _ = select.select(waiting.values(), (), (), max(0.0, deadline - time.monotonic()))
                rank = next((rank for rank, child in waiting.items() if child in ready), min(waiting))
                answers[rank] = waiting.pop(rank).finish(request, expected, max(0.0, deadline - time.monotonic()), limit_s=seconds)
        return joined([answers[rank] for rank in sorted(answers)])

    def begin_close(self) -> None:
        """Let all end while others do."""
        for child in self._children:
            child.begin_close()

    def kill(self) -> None:
        """End all at once."""
        _kill(self._children)


def _kill(children: Iterable[Child]) -> None:
    for child in children:
        child.kill()
