"""Traces of one row: a client process sends them, a worker serves them, the referee judges what came of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from common.python.errors import SideFailure, Status
from common.python.pairs.workload import Shape, ShapeValue
from common.python.processes import messages
from common.python.results import Check, ReportedMetric, ServedRequest
from common.python.session.planning import Plan
from common.python.session.session import Judging, Session, SideAtWork, entries_text

Unloaded = tuple[tuple[str, ShapeValue], ...]
"""A shape but for its load."""

TEETH_REQUESTS = 32  # that are judged, and that the judgement is tried on, before a row is timed
LOOKS = 8  # requests of a timed trace that are judged
REFUSED_SHARE = 0.99  # of wrong contexts, at least
SURPRISING = 0.01  # the share of rows in which an honest referee may be called too weak


def too_few(refused: int, tried: int) -> bool:
    """Whether none was tried, or a referee that refuses `REFUSED_SHARE` would refuse so few less than once in 100 rows."""
    missed = tried - refused
    likely = sum(math.comb(tried, one) * (1 - REFUSED_SHARE) ** one * REFUSED_SHARE ** (tried - one) for one in range(missed))
    return tried == 0 or 1 - likely < SURPRISING


@dataclass(frozen=True)
class Trace:
    """Which trace: its seed, all requests at once or as the workload says at shares of a saturation in requests/s, and on which core."""

    seed: int
    closed_loop: bool
    saturation_per_s: float = 0.0
    core: int = -1
    picks: int = LOOKS


@dataclass(frozen=True)
class Answered:
    """A trace that was served: its requests' stamps, whole answers of some, and the worker's peak memory, digest and own figures."""

    seed: int
    requests: tuple[ServedRequest, ...]
    answers: list[messages.AnsweredRequest]
    digest: str
    peak_memory_bytes: int
    metrics: dict[str, ReportedMetric]

    @property
    def seconds(self) -> float:
        """From the trace's begin to its last token."""
        return max(1, *(stamp for request in self.requests for stamp in request.tokens_us)) / 1e6


class Traces:
    """The client process of one row, and what it, its workers and its referee do together."""

    def __init__(self, session: Session, plan: Plan, judging: Judging) -> None:
        self._session = session
        self._plan = plan
        self._judging = judging
        self._client = session.server.fork("client", session.logs(plan.target, "") / "client.log")
        self._begun = False
        self.saturations: dict[Unloaded, float] = {}  # that were measured

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._begun:  # nobody will wait for the answer
            self._client.kill()
        self._client.__exit__(kind, error, trace)

    @property
    def _workload(self) -> str:
        return str(self._plan.selection.pair.workload)

    def told(self, shape: Shape) -> messages.TrafficTold:
        """The traffic at `shape`. Raises SideFailure."""
        request = messages.AskTraffic(workload=self._workload, shape=dict(shape))
        return self._client.ask(request, messages.TrafficTold, self._session.limit_s("prepare"))

    def serve(self, worker: SideAtWork, side: str, shape: Shape, trace: Trace, seconds: float) -> Answered:
        """Have a prepared worker serve a trace. Raises SideFailure for one that is not answered whole, token by token."""
        ring = self._session.dump_prefix()
        replay = messages.Replay(
            workload=self._workload,
            shape=dict(shape),
            seed=trace.seed,
            ring=ring,
            closed_loop=trace.closed_loop,
            saturation_per_s=trace.saturation_per_s,
            picks=trace.picks,
            core=trace.core if trace.core >= 0 else self._session.core_for(self._plan),
            seconds=seconds,
        )
        try:
            self._begun = True
            self._client.begin(replay)
            served = worker.ask(messages.Serve(ring=ring, core=trace.core), messages.Served, seconds)
            replayed = self._client.finish(replay, messages.Replayed, seconds)
            self._begun = False
        finally:
            Path(ring).unlink(missing_ok=True)
        if replayed.problem:
            reason = f"{self._plan.file(side).name} at {entries_text(shape)}, trace {trace.seed}: {replayed.problem}"
            raise SideFailure(Status.WRONG_RESULT, reason)
        found = tuple(replayed.requests), replayed.answers, served.digest, served.peak_memory_bytes, served.metrics
        return Answered(trace.seed, *found)

    def judge(self, side: str, shape: Shape, prepare_seed: int, answered: Answered, *, timed: bool, teeth: bool = False) -> Check:
        """How right the kept answers are. Raises SideFailure, also where with `teeth` wrong ones would be taken."""
        name = self._plan.file(side).name
        where = f"{name} at {entries_text(shape)}, trace {answered.seed}{', in a timed trace' if timed else ''}"
        judged = self._judging.judge_trace(side, shape, prepare_seed, answered.answers, teeth=teeth)
        if judged.digest != answered.digest:
            raise SideFailure(Status.INPUT_MODIFIED, f"{where}: the weights are not those that the seed makes; expected the same")
        if judged.mismatch:
            raise SideFailure(Status.WRONG_RESULT, f"{where}: {judged.mismatch}")
        if teeth:
            self._require_teeth(judged, shape)
        return Check(shape=dict(shape), seed=answered.seed, timed_call=timed, outputs=judged.outputs)

    def _require_teeth(self, judged: messages.TraceJudged, shape: Shape) -> None:
        found = {
            "requests answered from another request's context": (judged.refused_swapped, judged.tried),
            "answers with a stale block in their context": (judged.refused_stale, judged.tried_stale),
        }
        for how, (refused, tried) in found.items():
            if too_few(refused, tried):
                file = self._plan.selection.pair.workload.name
                what = f"the referee refuses {refused} of {tried} {how} at {entries_text(shape)}"
                raise SideFailure(Status.UNPROVEN, f"{file}: {what}; expected {REFUSED_SHARE:.0%}, with a smaller atol or other weights")
