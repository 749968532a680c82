"""The processes of one side, a rank each: asked as one, and answered for by one answer, in which the slowest rank is the side's time."""

from __future__ import annotations

import itertools
import re
import select
import sysconfig
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from common.python.errors import SideFailure, Status
from common.python.processes import messages
from common.python.processes.fork_server import Child
from common.python.processes.messages import Answer, Request
from common.python.results import CompilerFinding
from common.python.wording import seconds_text

T = TypeVar("T", bound=Answer)

_GLANCE_S = 0.01
_DYING_S = 0.3  # between what a rank says of a peer that it has lost and that one's end
_WAITING = ("/torch/distributed/", "/child/distributed.py", "/child/meeting.py", "/torch/cuda/__init__.py")
_NOT_OF_A_SIDE = ("site-packages", "/common/python/", sysconfig.get_path("stdlib"), "<")
_CALL = re.compile(r'File "(.+)", line (\d+) in (.+)')


def _all_of(lists: Sequence[Sequence[Any]]) -> list[Any]:
    return list(itertools.chain.from_iterable(lists))


def _spreads(began: Sequence[Sequence[int]]) -> list[int]:
    return [max(ranks) - min(ranks) for ranks in zip(*began, strict=True)]


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
        "began_ns": _spreads,
        "notes": lambda notes: list(dict.fromkeys(_all_of(notes))),
    },
}


def most_of(findings: Iterable[CompilerFinding]) -> list[CompilerFinding]:
    """Of each kind the finding with the largest count, the first of those: processes of one side compile the same functions."""
    most: dict[str, CompilerFinding] = {}
    for finding in findings:
        if finding.kind not in most or finding.count > most[finding.kind].count:
            most[finding.kind] = finding
    return list(most.values())


def joined(answers: Sequence[T]) -> T:
    """One answer for those of all ranks, in their order; calls say whose they are. Raises ValueError if ranks timed different counts."""
    answers = [_signed(answer, rank, len(answers)) for rank, answer in enumerate(answers)]
    first = answers[0]
    fields = {"compiler": lambda found: most_of(_all_of(found)), **_JOINED.get(type(first), {})}
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
            self.begin_close()  # they leave each other together

    def __len__(self) -> int:
        return len(self._children)

    def begin(self, request: Request) -> None:
        """Send `request` to every rank, with the rank's own number, and return at once; `finish` collects the answers."""
        for rank, child in enumerate(self._children):
            child.begin(request.for_rank(rank, len(self)))

    def finish(self, request: Request, expected: type[T], seconds: float) -> T:
        """The answer of all to what was begun; they are heard as they answer, and held still when all have.

        Raises SideFailure with what the first to fail says, and which rank it was; the others, who may be waiting for it, are killed.
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
                if not ready:
                    raise self._silent(request, waiting, seconds)
                rank = next(rank for rank, child in waiting.items() if child in ready)
                child, left = waiting.pop(rank), max(0.0, deadline - time.monotonic())
                try:
                    answers[rank] = child.hear(request, expected, left, limit_s=seconds)
                except SideFailure as failure:
                    raise self._first_of(failure, rank, waiting, request) from failure
        for child in self._children:
            child.hold_still()
        try:
            return joined([answers[rank] for rank in sorted(answers)])
        except ValueError as error:
            raise SideFailure(
                Status.CRASHED, f"the ranks say that they took different numbers of samples ({error}); expected one"
            ) from error

    def begin_close(self) -> None:
        """Let all end while others do."""
        for child in self._children:
            child.begin_close()

    def kill(self) -> None:
        """End all at once."""
        _kill(self._children)

    def _first_of(self, failure: SideFailure, rank: int, others: Mapping[int, Child], request: Request) -> SideFailure:
        """What failed first: a rank that lost a peer may say so before anybody sees that the peer has died."""
        if not others:
            return self._of(rank, failure)
        self._children[rank].kill()  # it would wait for them at its end
        deadline = time.monotonic() + _DYING_S
        while not (dead := [other for other, child in others.items() if child.has_closed]) and time.monotonic() < deadline:
            time.sleep(_GLANCE_S)
        for other in dead:
            try:
                others[other].hear(request, Answer, _DYING_S)
            except SideFailure as death:
                return self._of(other, death)
        return self._of(rank, failure)

    def _of(self, rank: int, failure: SideFailure) -> SideFailure:
        return SideFailure(failure.status, f"rank {rank}: {failure.reason}") if len(self) > 1 else failure

    def _silent(self, request: Request, waiting: Mapping[int, Child], seconds: float) -> SideFailure:
        """That none of those who are waited for has answered; of several ranks, who does not wait for a peer, and where that one is."""
        asked, limit = type(request).__name__.lower(), f"took more than {seconds_text(seconds)}"
        if len(self) == 1:
            return SideFailure(Status.TIMEOUT, f"{asked} {limit}; expected an answer by then")
        stacks = {rank: child.stack() for rank, child in waiting.items()}
        late = {rank: stack for rank, stack in stacks.items() if not _waits_for_a_peer(stack)} or stacks
        found = ", ".join(f"rank {rank}{_place(stack)}" for rank, stack in late.items())
        return SideFailure(Status.TIMEOUT, f"{found}: {asked} {limit}; expected an answer by then")


def _waits_for_a_peer(stack: Sequence[str]) -> bool:
    """Whether the innermost call is one in which a rank waits: a collective, the harness's own, or for the GPU to be done with one."""
    return bool(stack) and any(part in stack[0] for part in _WAITING)


def _place(stack: Sequence[str]) -> str:
    """The innermost call outside libraries and the harness, as file:line in function; nothing if there is none."""
    for file, line, function in (match.groups() for call in stack if (match := _CALL.match(call))):
        if not any(part in file for part in _NOT_OF_A_SIDE):
            return f" at {Path(file).name}:{line} in {function}"
    return ""


def _kill(children: Iterable[Child]) -> None:
    for child in children:
        child.kill()
