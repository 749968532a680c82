"""Timing of a serving row: both sides of a process pair serve the same traces, drawn anew for each block, by their clients' stamps."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from contextlib import ExitStack

from common.python.gate.verdicts import Standards
from common.python.measure.goal_figures import LOWER, gains_from
from common.python.measure.process_pairs import Measured, Measurement
from common.python.measure.serving_figures import figure_named, figures_of_blocks, interval_over
from common.python.pairs.goals import MEMORY, UNITS
from common.python.pairs.serving import LOAD, is_lower_better, unit_of
from common.python.pairs.workload import Shape
from common.python.processes.fork_server import ANY_CORE
from common.python.results import Block, Check, PairTiming, ServingFigures, Setup, Unit
from common.python.session.planning import Plan
from common.python.session.serving import TEETH_REQUESTS, Answered, Trace, Traces, Unloaded
from common.python.session.session import Judging, Session, SideAtWork

_SATURATION_TRACES = 3


def verify_serving(plan: Plan, session: Session, traces: Traces, side: str) -> tuple[list[Check], Setup]:
    """Have `side` serve two traces at every shape, and hold their answers to the workload. Raises SideFailure.

    Two, so that answers remembered from the first are wrong. At timed shapes, with the baseline's answers, the judgement is tried too.
    All requests come at once, so shapes that differ in their load alone are one.
    """
    checks: list[Check] = []
    session.tell(f"verifying {side}")
    with session.start_side(plan, side) as worker:
        verified: set[Unloaded] = set()
        for shape in [*plan.described.check_at, *plan.timed.values()]:
            closed = traces.told(shape).share_of_saturation > 0  # which nobody has measured yet
            if closed and unloaded(shape) in verified:
                continue
            verified |= {unloaded(shape)} if closed else set()
            seed, is_timed = session.new_seed(), shape in plan.timed.values()
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
        self._core = self._cores[0] if self._cores else ANY_CORE

    def _measured(self) -> Measured:
        """Measure the pair under its request load. Raises SideFailure.

        A load that is stated as a share of saturation needs the baseline's throughput at saturation, in requests per second.
        That figure is taken from the accepted row, or measured first where no row has it.
        """
        if self._told.share_of_saturation and not self._saturation_per_s:
            shape = unloaded(self._shape)
            if shape not in self._traces.saturations:  # one for all loads of a sweep, or they were shares of different things
                self._traces.saturations[shape] = self._measured_saturation()
            self._saturation_per_s = self._traces.saturations[shape]
        measured = super()._measured()
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
        unit = UNITS[MEMORY] if self._goal == MEMORY else unit_of(self._goal)
        measured.timing = measured.timing.model_copy(update={"serving": serving, "unit": unit})
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
        unit = Unit(order=tuple(ran), blocks={side: tuple(taken) for side, taken in blocks.items()})
        peaks = {side: float(seen.peak_memory_bytes) for side, seen in answered.items()}
        figures = peaks if self._goal == MEMORY else self._figures_at_goal(unit)
        return unit.model_copy(update={"figures": figures, "gains": gains_from(figures, better_at(self._goal))})

    def _figures_at_goal(self, unit: Unit) -> dict[str, float]:
        found = {side: figure_named(figures_of_blocks(blocks, *self._slo), self._goal) for side, blocks in unit.blocks.items()}
        return {side: figure for side, figure in found.items() if figure is not None}

    def _weigh_all(self, workers: Mapping[str, SideAtWork]) -> None:
        """Start them as for any other goal: what torch's allocator holds at most is read from each trace."""
        for worker in workers.values():
            worker.begin_load()
        self._leaving.close()
        for worker in workers.values():
            worker.finish_load()
        self._prepare_all(workers)

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


def unloaded(shape: Shape) -> Unloaded:
    """A shape but for its load."""
    return tuple(sorted((key, value) for key, value in shape.items() if key != LOAD))


def saturations_in(timings: Iterable[PairTiming]) -> dict[Unloaded, float]:
    """What saturation these loads are shares of, by the shape but for its load."""
    return {
        unloaded(timing.shape): timing.serving.saturation_per_s for timing in timings if timing.serving and timing.serving.saturation_per_s
    }


def better_at(goal: str) -> str:
    """Whether a lower or a higher figure is better at `goal`: less memory and less latency are."""
    return LOWER if goal == MEMORY or is_lower_better(goal) else "higher"


def _block(answered: Answered) -> Block:
    return Block(seed=answered.seed, samples_ns=(answered.seconds * 1e9,), requests=answered.requests)
