"""How long the roles of a kernel were busy together: what a chapter's traced demo measured, kept as `chNN/*_overlap_trace_<gpu>.json`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from common.python.errors import BenchmarkError, Status
from common.python.gate.statistics import Mean, geometric_interval, t_quantile
from common.python.results import OPTIMIZED, SCHEMA_VERSION, Document, Interval, PairResult
from common.python.wording import interval_text, speedup_text

ROLES = ("load", "multiply", "drain")
WAIT = "wait"
NOBODY = "nobody"


def _sets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, size) for size in range(len(names), -1, -1))


SETS = tuple(" ".join(names) or NOBODY for names in _sets((*ROLES, WAIT)))

Trace = TypeVar("Trace", bound=Document)

Positive = Annotated[float, Field(gt=0)]


class TracedLaunch(Document):
    """A launch that stamped and one that did not, in us; `shares` of the blocks' time by the set of those who were busy.

    `loads_in_flight` is how many stages were on their way on average, `step_ns` what a step of a block took.
    """

    traced_us: Positive
    untraced_us: Positive
    loads_in_flight: Positive
    step_ns: Positive
    shares: dict[str, Annotated[float, Field(ge=0)]]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if set(self.shares) != set(SETS) or not math.isclose(sum(self.shares.values()), 1, abs_tol=1e-4):
            raise ValueError(f"shares of {sorted(self.shares)} that sum to {sum(self.shares.values())}; expected every set, and 1 in all")
        return self


class RoleTrace(Document):
    """What one run of the demo found on the GPU `gpu`, of the side in the file `side` beside it; the clock moves by `clock_step_ns`."""

    schema_version: Literal[1] = SCHEMA_VERSION
    gpu: str
    driver: str
    date: str
    side: str
    shape: dict[str, int]
    blocks: int
    stages: int
    clock_step_ns: int
    launches: Annotated[tuple[TracedLaunch, ...], Field(min_length=2)]  # fewer have no variance

    def share(self, holds: Callable[[frozenset[str]], bool]) -> Interval:
        """The share of time in which `holds` says yes of those who were busy, WAIT among them where who multiplies waited."""
        chosen = [name for name in SETS if holds(frozenset(name.split()) - {NOBODY})]
        return mean_of([sum(launch.shares[name] for name in chosen) for launch in self.launches])

    @property
    def where(self) -> str:
        """What was traced, on what, and when."""
        shape = ", ".join(f"{name} = {value}" for name, value in self.shape.items())
        return f"{self.side} at {shape} on an {self.gpu}, driver {self.driver}, {self.date}: means of {len(self.launches)} launches"

    @property
    def times(self) -> tuple[Interval, Interval, Interval]:
        """The kernel's time with time stamps and without, both in ns, and the ratio of the two: what stamping costs."""
        traced = geometric_interval([1e3 * launch.traced_us for launch in self.launches])
        untraced = geometric_interval([1e3 * launch.untraced_us for launch in self.launches])
        return traced, untraced, geometric_interval([launch.traced_us / launch.untraced_us for launch in self.launches])

    @property
    def loads_in_flight(self) -> Interval:
        """Stages on their way, on average over a block's time."""
        return mean_of([launch.loads_in_flight for launch in self.launches])

    @property
    def step_ns(self) -> Interval:
        """What a step of a block took, waits and all."""
        return mean_of([launch.step_ns for launch in self.launches])


def mean_of(values: list[float]) -> Interval:
    """The mean of one value a launch, none below 0, with its 95 % interval."""
    mean = Mean.of(values)
    half = t_quantile(mean.degrees, 0.975) * math.sqrt(mean.variance)
    return Interval(estimate=mean.value, low=max(0.0, min(mean.value, mean.value - half)), high=mean.value + half)


def read_trace(path: Path, kind: type[Trace]) -> Trace:
    """The document of `kind` at `path`. Raises BenchmarkError, naming it, for one that is no such document."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}; expected a readable file") from error
    except ValueError as error:  # what is not UTF-8, no JSON, or another document
        raise BenchmarkError(f"{path}: found {str(error).splitlines()[-1].strip()}; expected what the demo beside it writes") from error


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


def percent_text(share: Interval) -> str:
    """A share with its interval: 39.3 % [39.2, 39.4]."""
    return f"{100 * share.estimate:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]"


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
