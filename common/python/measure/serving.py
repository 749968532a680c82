"""Timing of a serving row: both sides of a process pair serve the same traces, drawn anew for each block, by their clients' stamps."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import ExitStack

from common.python.gate.verdicts import Standards
from common.python.measure.process_pairs import Measured, Measurement
from common.python.measure.serving_figures import figure_named, figures_of_blocks, interval_over
from common.python.pairs.serving import MEMORY, is_latency, is_lower_better
from common.python.results import BASELINE, Block, Check, ServingFigures, Setup, Unit
from common.python.session.planning import Plan
from common.python.session.serving import TEETH_REQUESTS, Answered, Trace, Traces
from common.python.session.session import Judging, Session, SideAtWork

_SATURATION_TRACES = 3


def verify_serving(plan: Plan, session: Session, traces: Traces, side: str) -> tuple[list[Check], Setup]:
    """Have `side` serve two traces at every shape, and hold their answers to the workload. Raises SideFailure.

    Two, so that answers remembered from the first are wrong. At timed shapes, with the baseline's answers, the judgement is tried too.
    """
    checks: list[Check] = []
    session.tell(f"verifying {side}")
    with session.start_side(plan, side) as worker:
        for shape in [*plan.described.check_at, *plan.timed.values()]:
            seed, is_timed = session.new_seed(), shape in plan.timed.values()
            closed = traces.told(shape).share_of_saturation > 0  # which nobody has measured yet
            prepared = worker.prepare(shape, seed, session.new_seed())
            for number in range(2):
                trace = Trace(session.new_seed(), closed, picks=TEETH_REQUESTS)
                answered = traces.serve(worker, side, shape, trace, session.limit_s("prepare"))
                teeth = is_timed and number == 0 and side == plan.sides[0]
                checks.append(traces.judge(side, shape, seed, answered, timed=False, teeth=teeth))
        setup = Setup(load_s=worker.load_s, prepare_s=prepared.seconds, first_call_s=answered.seconds)
    return checks, setup


class ServingMeasurement(Measurement):
    """A block is one trace. Of a trace that is sent faster than it can be served, a figure says how long the trace was, and no more."""

    def __init__(self, session: Session, plan: Plan, shape: str, standards: Standards, judging: Judging, traces: Traces) -> None:
        super().__init__(session, plan, shape, standards, judging)
        self._traces = traces
        self._told = traces.told(self._shape)
        self._slo = self._told.slo_ttft_ms, self._told.slo_tpot_ms
        self._goal = plan.described.goal
        self._saturation_per_s = standards.saturation_per_s(plan, shape)
        self._hold = False

    def run(self) -> Measured:
        """Measure, at the baseline's kept saturation, or at what it is found to be now. Raises SideFailure."""
        if self._told.share_of_saturation and not self._saturation_per_s:
            self._saturation_per_s = self._measured_saturation()
        measured = super().run()
        units = measured.timing.units
        each = {side: [figures_of_blocks(unit.blocks[side], *self._slo) for unit in units] for side in self._plan.sides}
        known = {side: set.intersection(*(set(figures) for figures in found)) for side, found in each.items()}
        figures = {
            side: {name: interval_over([unit[name] for unit in found]) for name in found[0] if name in known[side]}
            for side, found in each.items()
        }
        share = self._told.share_of_saturation
        serving = ServingFigures(
            slo_ttft_ms=self._told.slo_ttft_ms,
            slo_tpot_ms=self._told.slo_tpot_ms,
            figures=figures,
            offered_per_s=(share * self._saturation_per_s if share else self._told.per_s) or None,
            saturation_per_s=self._saturation_per_s if share else None,
        )
        measured.timing = measured.timing.model_copy(update={"serving": serving})
        return measured

    def _unit(self, order: tuple[str, ...]) -> Unit:
        with ExitStack() as stack:
            workers = self._start_all(order, stack)
            for side in order:
                self._warm_up(workers[side], side)
            blocks: dict[str, list[Block]] = {side: [] for side in order}
            ran: list[str] = []
            answered: dict[str, Answered] = {}
            for sides in (order, tuple(reversed(order))):
                seed = self._session.new_seed()
                for side in sides:
                    answered[side] = self._serve(workers[side], side, Trace(seed, False, self._saturation_per_s, self._core))
                    blocks[side].append(_block(answered[side]))
                    ran.append(side)
            for worker in workers.values():
                worker.begin_close()
            self._leaving.push(stack.pop_all())
        found = {side: tuple(taken) for side, taken in blocks.items()}
        figures = {side: figures_of_blocks(taken, *self._slo) for side, taken in found.items()}
        peaks = {side: float(seen.peak_memory_bytes) for side, seen in answered.items()}
        return Unit(order=tuple(ran), blocks=self._timed_by_goal(found, figures), gains=gains_over_baseline(self._goal, figures, peaks))

    def _timed_by_goal(
        self, blocks: Mapping[str, tuple[Block, ...]], figures: Mapping[str, Mapping[str, float]]
    ) -> dict[str, tuple[Block, ...]]:
        """Where the goal is a latency, that of the whole unit in place of the traces' lengths, which follow from the arrivals."""
        if not is_latency(self._goal):
            return dict(blocks)
        ns = {side: max(1.0, 1e6 * (figure_named(found, self._goal) or 0.0)) for side, found in figures.items()}
        return {side: tuple(block.model_copy(update={"samples_ns": (ns[side],)}) for block in taken) for side, taken in blocks.items()}

    def _serve(self, worker: SideAtWork, side: str, trace: Trace) -> Answered:
        answered = self._traces.serve(worker, side, self._shape, trace, self._left())
        self._checks[side].append(self._traces.judge(side, self._shape, self._prepare_seed, answered, timed=True))
        self._peaks.setdefault(side, answered.peak_memory_bytes)
        self._metrics[side] = answered.metrics
        return answered

    def _warm_up(self, worker: SideAtWork, side: str) -> None:
        """A trace as fast as it can be served: kernels are loaded and memory is found. Its answers are judged like any other's."""
        self._serve(worker, side, Trace(self._session.new_seed(), True, core=self._core))

    def _measured_saturation(self) -> float:
        """Requests/s of the baseline, or of the first side of a half, where all requests of a trace come at once."""
        side = self._plan.sides[0]
        self._session.tell(f"measuring the saturation of {side}")
        with self._session.start_side(self._plan, side) as worker:
            worker.prepare(self._shape, self._prepare_seed, self._session.new_seed())
            self._warm_up(worker, side)
            seeds = [self._session.new_seed() for _ in range(_SATURATION_TRACES)]
            traces = [self._serve(worker, side, Trace(seed, True, core=self._core)) for seed in seeds]
        return statistics.median(len(answered.requests) / answered.seconds for answered in traces)


def gains_over_baseline(goal: str, figures: Mapping[str, Mapping[str, float]], peaks: Mapping[str, float]) -> dict[str, float]:
    """How many times better than the baseline each side is at `goal`, of figures or peak bytes by side; of those that are not zero."""
    costs = {}
    for side, found in figures.items():
        figure = peaks[side] if goal == MEMORY else figure_named(found, goal)
        if figure:
            costs[side] = figure if goal == MEMORY or is_lower_better(goal) else 1 / figure
    return {side: costs[BASELINE] / cost for side, cost in costs.items() if side != BASELINE and BASELINE in costs}


def _block(answered: Answered) -> Block:
    return Block(seed=answered.seed, samples_ns=(answered.seconds * 1e9,), requests=answered.requests)
