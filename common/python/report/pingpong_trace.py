"""What two warpgroups did at the same time: what a chapter's traced demo measured, kept as `chNN/*_pingpong_trace_<gpu>.json`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from common.python.report.traced_demo import TracedDemo, TracedLaunch, mean_of, percent_text, read_trace
from common.python.results import Document
from common.python.wording import interval_text, speedup_text

PHASES = (
    *("wait for turn", "issue scores", "wait for values", "issue values", "wait for scores", "softmax"),
    *("wait for keys", "wait for sums", "round", "outside"),
)
SOFTMAX = frozenset({"softmax"})
SCORES_RUN = frozenset(PHASES[1:5])  # products of scores are issued and have not ended
MAY_MULTIPLY = frozenset(PHASES[1:8])  # nobody has seen the end of products that are issued

Share = Annotated[float, Field(ge=0)]


class PingPongLaunch(TracedLaunch):
    """Shares of the blocks' time by the phases of warpgroup 0 and of warpgroup 1."""

    together: tuple[tuple[Share, ...], ...]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        sizes = {len(self.together), *map(len, self.together)}
        if sizes != {len(PHASES)} or not math.isclose(sum(map(sum, self.together)), 1, abs_tol=1e-4):
            raise ValueError(f"shares of {sorted(sizes)} phases; expected {len(PHASES)} by {len(PHASES)}, and 1 in all")
        return self

    def under(self, of: frozenset[str], other: frozenset[str]) -> float:
        """Of the time that a warpgroup is in `of`, the share in which the other one is in `other`."""
        whole = found = 0.0
        for first, row in zip(PHASES, self.together, strict=True):
            for second, share in zip(PHASES, row, strict=True):
                whole += share * ((first in of) + (second in of))
                found += share * ((first in of and second in other) + (second in of and first in other))
        return found / whole if whole else 0.0

    def spent(self, phase: str) -> float:
        """The share of its time that a warpgroup spends in `phase`."""
        number = PHASES.index(phase)
        return (sum(self.together[number]) + sum(row[number] for row in self.together)) / 2


class Event(Document):
    """A phase of warpgroup `tid` of block `pid`, in us, as Chrome's trace viewers name it."""

    name: str
    ph: Literal["X"]
    pid: int
    tid: Annotated[int, Field(ge=0, le=1)]
    ts: Share
    dur: Share

    @model_validator(mode="after")
    def _is_a_phase(self) -> Self:
        if self.name not in PHASES:
            raise ValueError(f"the phase {self.name!r}; expected one of {', '.join(PHASES)}")
        return self


class PingPongTrace(TracedDemo):
    """What one run of the demo found; `events` are the phases of some steps of one block."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    phases: tuple[str, ...]
    launches: Annotated[tuple[PingPongLaunch, ...], Field(min_length=2)]  # fewer have no variance
    events: Annotated[tuple[Event, ...], Field(min_length=1, alias="traceEvents")]

    @model_validator(mode="after")
    def _has_our_phases(self) -> Self:
        if self.phases != PHASES:
            raise ValueError(f"the phases {', '.join(self.phases)}; expected {', '.join(PHASES)}")
        return self


def read_pingpong_trace(path: Path) -> PingPongTrace:
    """The trace at `path`. Raises BenchmarkError, naming it, for a file that is none."""
    return read_trace(path, PingPongTrace)


def lines(trace: PingPongTrace) -> Iterator[tuple[str, str]]:
    """What is told, and its share of the time: of a softmax's first, then of a warpgroup's."""
    told = {
        "softmax, while the other's products of scores run": SCORES_RUN,
        "softmax, while the other's products of scores run, or of values may": MAY_MULTIPLY,
        "softmax, while the other's softmax runs": SOFTMAX,
    }
    for words, other in told.items():
        yield words, f"{percent_text(mean_of([launch.under(SOFTMAX, other) for launch in trace.launches]))} of softmax"
    for phase in PHASES:
        yield phase, f"{percent_text(mean_of([launch.spent(phase) for launch in trace.launches]))} of all"


def sentences(trace: PingPongTrace) -> list[str]:
    """What the phases are, and what the shares rest on."""
    traced, untraced, ratio = trace.times
    return [
        "A warpgroup waits for its products of scores, so their end is seen at once.",
        "Its own softmax may hide the end of its products of values: a share that counts those is an upper bound.",
        "Outside: the first scores and the first softmax of a tile of queries, its last products and its store.",
        f"A step takes {interval_text(trace.step_ns)}; the clock moves on by {trace.clock_step_ns} ns.",
        f"The kernel takes {interval_text(traced)} with its stamps and {interval_text(untraced)} without: {speedup_text(ratio)}.",
    ]
