"""How long the roles of a kernel were busy together: what a chapter's traced demo measured, kept as `chNN/*_overlap_trace_<gpu>.json`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from common.python.errors import Status
from common.python.report.traced_demo import Positive, TracedDemo, TracedLaunch, mean_of, percent_text, read_trace
from common.python.results import OPTIMIZED, Interval, PairResult
from common.python.wording import interval_text, speedup_text

ROLES = ("load", "multiply", "drain")
WAIT = "wait"
NOBODY = "nobody"


def _sets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, size) for size in range(len(names), -1, -1))


SETS = tuple(" ".join(names) or NOBODY for names in _sets((*ROLES, WAIT)))


class RoleLaunch(TracedLaunch):
    """`shares` of the blocks' time by the set of those who were busy; `loads_in_flight`: how many stages were on their way on average."""

    loads_in_flight: Positive
    shares: dict[str, Annotated[float, Field(ge=0)]]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if set(self.shares) != set(SETS) or not math.isclose(sum(self.shares.values()), 1, abs_tol=1e-4):
            raise ValueError(f"shares of {sorted(self.shares)} that sum to {sum(self.shares.values())}; expected every set, and 1 in all")
        return self


class RoleTrace(TracedDemo):
    """What one run of the demo found."""

    stages: int
    launches: Annotated[tuple[RoleLaunch, ...], Field(min_length=2)]  # fewer have no variance

    def share(self, holds: Callable[[frozenset[str]], bool]) -> Interval:
        """The share of time in which `holds` says yes of those who were busy, WAIT among them where who multiplies waited."""
        chosen = [name for name in SETS if holds(frozenset(name.split()) - {NOBODY})]
        return mean_of([sum(launch.shares[name] for name in chosen) for launch in self.launches])

    @property
    def loads_in_flight(self) -> Interval:
        """Stages on their way, on average over a block's time."""
        return mean_of([launch.loads_in_flight for launch in self.launches])


def read_role_trace(path: Path) -> RoleTrace:
    """The role trace at `path`. Raises BenchmarkError, naming it, for a file that is none."""
    return read_trace(path, RoleTrace)


def traces_of(row: PairResult, root: Path) -> list[RoleTrace]:
    """The role traces of a passed row's optimized side: the `*_overlap_trace_*.json` files beside it that name it.

    The row's file is relative to `root`. A row that did not pass has no traces.
    Raises BenchmarkError for a file that is not a role trace.
    """
    if row.status is not Status.PASSED or OPTIMIZED not in row.sides:
        return []
    file = root / row.sides[OPTIMIZED].file
    return [trace for trace in map(read_role_trace, sorted(file.parent.glob("*_overlap_trace_*.json"))) if trace.side == file.name]


def lines(trace: RoleTrace) -> Iterable[tuple[str, str, str]]:
    """Who was busy, in what share of a block's time, and in what share of it who multiplies waited for a stage besides."""
    for names in _sets(ROLES):
        yield ", ".join(names) or NOBODY, *_with_wait(trace, frozenset(names).__eq__)
    for role in ROLES:
        yield f"{role}, in all", *_with_wait(trace, frozenset({role}).issubset)


def _with_wait(trace: RoleTrace, holds: Callable[[frozenset[str]], bool]) -> tuple[str, str]:
    whole = trace.share(lambda busy: holds(busy - {WAIT}))
    waiting = trace.share(lambda busy: WAIT in busy and holds(busy - {WAIT}))
    return percent_text(whole), percent_text(waiting)


def sentences(trace: RoleTrace) -> list[str]:
    """When a role is called busy, and what the shares rest on."""
    loads, step = trace.loads_in_flight, trace.step_ns
    traced, untraced, ratio = trace.times
    in_flight = f"{loads.estimate:.2f} [{loads.low:.2f}, {loads.high:.2f}]"
    return [
        f"Load: a TMA request of the block is in flight; on average {in_flight} of {trace.stages} stages are.",
        "Multiply: products of a step have been issued, and its stage has not been given back.",
        "While who multiplies waits for another stage, products of wgmma may have ended: nobody sees their end who does not wait for it.",
        "Drain: from the first read of a tile's sums to the end of its last store.",
        f"A step takes {interval_text(step)}; the clock of the stamps moves on by {trace.clock_step_ns} ns.",
        f"The kernel takes {interval_text(traced)} with its stamps and {interval_text(untraced)} without: {speedup_text(ratio)}.",
    ]
