"""Timing from the parent's side: fresh process pairs, alternating blocks, roles swapped, until the interval is narrow."""

from __future__ import annotations

import functools
import math
import os
import random
import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import psutil

from common.python.errors import SideFailure, Status
from common.python.gate.statistics import figures_of, gains_of, joules_of, median_ns, rungs_of, speedups_of, times_of
from common.python.gate.verdicts import Standards
from common.python.machine.telemetry import Telemetry
from common.python.measure.goal_figures import better_of, figures_for, gains_from, unit_of
from common.python.measure.hidden_work import Span, WallClock, unfinished
from common.python.measure.stopping import DEAR_S, StopRule, Throttle
from common.python.pairs.goals import GOALS, MEMORY, TIME
from common.python.pairs.workload import Shape
from common.python.processes import messages
from common.python.results import BASELINE, Block, Check, PairTiming, ReportedMetric, StopReason, Unit
from common.python.session.planning import Plan
from common.python.session.session import Judging, Session, SideAtWork
from common.python.wording import bytes_text, seconds_text

BLOCK_S = 0.06  # a process's own offset is what is left after so many samples, and another process costs 0.5 s
MOST_SAMPLES = 64
RANKS_BLOCK_S = 0.25  # several ranks scatter within a block too: by their hosts, and by who comes last
MOST_RANKS_SAMPLES = 256
FEW_SAMPLES = 3
MOST_COPIES = 32
MOST_SETS = 8  # of buffers: their places differ by 0.13 % on an H200, from one set to the next
SETS_SHARE = 0.25  # of the device's memory that they may take
SETS_PREPARE_S = 0.4  # that all but the first may take to be set up, in each unit
SHORT_NS = 25_000.0  # 20 times what an empty pair of events costs on an H200
AHEAD_SHARE = 0.5  # of the device's memory, and of the host's that is free: what processes may hold that wait to be timed
CONTEXT_BYTES = 1 << 30  # that a process holds of either beside its tensors
WARM_S = 0.5
FEWEST_UNITS = 2  # that have a variance


@dataclass
class Measured:
    """A timing, and what was learnt beside it: checks of timed calls, peak memory and self-reported metrics, by side.

    In `starting_s` of it processes started, `prepare` included.
    """

    timing: PairTiming
    checks: dict[str, list[Check]]
    peak_memory_bytes: dict[str, int]
    metrics: dict[str, dict[str, ReportedMetric]]
    starting_s: float = 0.0


@dataclass
class _Started:
    """The workers of a unit, prepared, in the order of their first blocks; `stack` ends them."""

    order: tuple[str, ...]
    workers: dict[str, SideAtWork]
    stack: ExitStack


def draw_looks(blocks: int) -> list[int]:
    """How many calls of each of a unit's blocks are judged, by chance: of a block none, one or two, of all at least one.

    A side cannot know which call it will be, and after one not that it was the last: one that has noticed a look, and works no more, is
    looked at again in two of three units.
    """
    while True:
        found = [random.choice((0, 0, 1, 2)) for _ in range(blocks)]
        if any(found):
            return found


class Measurement:
    """The timing of one pair at one of its named shapes; the GPUs that it uses are watched meanwhile."""

    def __init__(self, session: Session, plan: Plan, shape: str, standards: Standards, judging: Judging) -> None:
        self._session = session
        self._plan = plan
        self._shape: Shape = plan.timed[shape]
        self._standards = standards
        self._rule = StopRule(session.settings, standards, plan, shape)
        gpus = plan.gpus if plan.device == "cuda" else ()
        self._telemetry = Telemetry(gpus)
        self._throttle = Throttle(self._telemetry)
        self._timed_s = 0.0
        self._prepare_s = 0.0
        self._starting_s = 0.0
        self._judging = judging
        self._prepare_seed = session.new_seed()
        self._is_sized = False  # the first unit tells how long calls take, and so how many make a sample, on how many sets of buffers
        self._copies = dict.fromkeys(plan.sides, 1)
        self._sets = 1
        self._memory_bytes = min((gpu.memory_bytes for gpu in gpus), default=0)
        is_compiled = any(session.starts_compiler(plan, side) for side in plan.sides)
        self._calls_first = is_compiled and not plan.serves and session.settings.warmup != 0  # so that all load side by side
        self._at_once = 1  # units, that is, whose workers start side by side
        self._ahead: deque[_Started] = deque()  # units that wait to be timed
        self._done: list[SideAtWork] = []  # workers that were timed
        self._hold = plan.clock == "device"
        self._sustained = session.is_sustained(plan)
        self._cores = self._fastest_cores()
        self._checks: dict[str, list[Check]] = {side: [] for side in plan.sides}
        self._peaks: dict[str, int] = {}
        self._outside: dict[str, int] = {}  # of `_peaks`, what does not lie in torch's allocator, where a memory row tells
        self._metrics: dict[str, dict[str, ReportedMetric]] = {}
        self._notes = {f"each side may use {len(plan.cores)} cores"} if plan.cores else set()
        self._numa_nodes: set[int] = set()
        self._spreads_ns: dict[str, list[int]] = {side: [] for side in plan.sides}  # of the ranks' clocks, as they start
        self._wall_clock = WallClock()
        self._spans: dict[str, list[Span]] = {}  # of the unit that is measured
        self._behind_ns: dict[str, list[float]] = {side: [] for side in plan.sides}  # of the calls that were looked at
        self._waiting = ExitStack()  # workers of the units that wait
        self._leaving = ExitStack()  # workers of the last units, which end while those of the next start
        self._begin = time.monotonic()
        self._limit_s = len(plan.sides) * session.settings.timeout_s("measure")
        self._deadline = min(self._begin + self._limit_s, session.deadline)
        self._before_s = 0.0  # that passed before the first process pair
        self._units_s: list[float] = []  # that each took

    def _fastest_cores(self) -> list[int]:
        """The core on which the calling thread of each rank stays; none where it has one already, or may use several."""
        plan, allowed = self._plan, tuple(sorted(os.sched_getaffinity(0)))
        if plan.device == "cpu" or plan.cores:
            return []
        if plan.ranks > 1:
            shares = [self._session.cores_for(plan, rank) for rank in range(plan.ranks)]
            return [fastest_core(share) for share in shares] if all(shares) else []
        return [] if plan.clock == "device" else [fastest_core(allowed)]

    def run(self) -> Measured:
        """Time the row, --repeat times over. Raises SideFailure: of a request that was cut off at the row's own limit, what used it up."""
        try:
            return self._measured()
        except SideFailure as failure:
            if failure.status is Status.TIMEOUT and self._begin + self._limit_s <= time.monotonic() < self._session.deadline:
                raise SideFailure(Status.TIMEOUT, self._used_up(failure.reason.removesuffix("; expected an answer by then"))) from failure
            raise

    def _used_up(self, last: str) -> str:
        limit = f"measuring used up its limit of {seconds_text(self._limit_s)}, which --timeout-multiplier raises"
        begun = f"the first process pair began after {self._before_s:.1f} s" if self._before_s else "no process pair began"
        done = f"{len(self._units_s)} done in {sum(self._units_s):.1f} s"
        return f"{limit}: {begun}, {done}; then {last}; expected all by then"

    def _measured(self) -> Measured:
        with self._telemetry, self._leaving, self._waiting:
            begin = time.monotonic()
            repetitions, reason = self._repetitions()
            telemetry = self._telemetry.summary(begin)
        if not self._sustained and (hidden := self._wall_clock.hidden()):
            raise SideFailure(Status.IMPLAUSIBLE, hidden)
        everything = [unit for units in repetitions for unit in units]
        for side, behind_ns in self._behind_ns.items():
            call_ns = statistics.median(median_ns(unit, side) for unit in everything)
            held = self._hold and self._plan.ranks == 1  # how long NCCL's last work may take behind a held stream, nothing has told yet
            if left := unfinished(behind_ns, call_ns, held=held, gpus=len(self._plan.gpus)):
                raise SideFailure(Status.STREAM_ESCAPE, f"{self._plan.file(side).name}: {left}")
        settings = self._session.settings
        each = [speedups_of(units) for units in repetitions] if settings.repeat > 1 else []
        known = self._standards.allowance(self._plan, everything).known
        times = times_of(everything, known)
        if known:
            self._notes.add("with so few units, the deviation between processes is at least that of this machine's noise floor")
        self._note_conditions()
        timing = PairTiming(
            shape=dict(self._shape),
            device=self._plan.device,
            clock=self._plan.clock,
            cache=self._plan.described.cache,
            mode="cold_start" if self._session.is_cold(self._plan) else "sustained" if self._sustained else "burst",
            launch_latency_hidden=self._is_held,
            calls_per_sample=self._copies,
            buffer_sets=self._sets,
            places=self._plan.described.places if self._plan.device == "cuda" else {},
            numa_nodes=tuple(sorted(self._numa_nodes)),
            units=tuple(everything),
            time_ns={side: times[side] for side in self._plan.sides},
            speedups=speedups_of(everything, known),
            rungs=rungs_of(everything, self._plan.sides, self._plan.described.goal, known),
            stop_reason=reason,
            goal=self._plan.described.goal,
            gains=gains_of(everything, known),
            figures=figures_of(everything, known),
            unit=unit_of(self._plan.described.goal, self._metrics),
            joules=joules_of(everything),
            repeats={side: tuple(speedups[side] for speedups in each) for side in (each[0] if each else ())},
            seconds=self._timed_s,
            telemetry=telemetry,
            notes=tuple(sorted(self._notes)),
            ranks=self._plan.ranks,
        )
        return Measured(timing, self._checks, self._peaks, self._metrics, self._starting_s)

    @property
    def _is_held(self) -> bool:
        """Whether no launch latency is in the times."""
        return self._plan.clock == "device" and self._hold

    def _rank_notes(self) -> list[str]:
        """What is to be known of the times of several ranks."""
        if self._plan.ranks == 1:
            return []
        notes = [f"a sample's time is that of the slowest of {self._plan.ranks} ranks, which start it behind a barrier"]
        if self._plan.clock == "device":
            how = "outside the times: all streams are held until the last rank has queued its calls"
            notes.append(f"launch latency is {how if self._hold else 'in the times: the streams are not held'}")
        for side, spreads in self._spreads_ns.items():
            if spreads:
                notes.append(f"{side}: the ranks' clocks started within {statistics.median(spreads) / 1e3:.0f} us of each other (median)")
        return notes

    def _note_conditions(self) -> None:
        self._notes.update(self._rank_notes())
        for side, outside in self._outside.items():
            self._notes.add(f"{side} holds {bytes_text(outside)} beside torch's allocator, the code of its kernels included")
        if self._throttle.discarded:
            self._notes.add(f"{self._throttle.discarded} blocks were taken again: the device throttled in them")

    def _repetitions(self) -> tuple[list[list[Unit]], StopReason]:
        repetitions: list[list[Unit]] = []
        while True:
            held = self._hold
            units, reason = self._units()
            if held and not self._hold:
                repetitions.clear()  # no launch latency is in them
            repetitions.append(units)
            if len(repetitions) == self._session.settings.repeat:
                return repetitions, reason

    def _units(self) -> tuple[list[Unit], StopReason]:
        units: list[Unit] = []
        already_s = self._timed_s
        turn = 0
        while True:
            forwards = (turn % 2 == 0) is not self._session.reversed
            order = self._plan.sides if forwards else tuple(reversed(self._plan.sides))
            begin, held, before_s = time.monotonic(), self._hold, self._timed_s
            self._at_once = self._units_at_once(units)
            self._before_s = self._before_s or max(1e-3, begin - self._begin)
            units.append(self._cold_unit(order) if self._session.is_cold(self._plan) else self._unit(order))
            self._units_s.append(time.monotonic() - begin)
            # What compiled sides take to load counts: more units of them would each take longer to start than to time.
            apart_s, load_s = (0.0, self._prepare_s) if self._calls_first else (self._prepare_s, 0.0)
            self._timed_s += self._units_s[-1] - apart_s
            if held and not self._hold:  # from this unit on launch latency is in the times, and none is in those before
                units, already_s = units[-1:], before_s
            self._session.tell(self._running_estimate(units))
            left_s = self._deadline - time.monotonic()
            timed_s = self._timed_s - already_s
            reason = self._rule.reason(units, timed_s, apart_s, load_s=load_s, is_held=self._is_held, left_s=left_s)
            if self._throttle.is_unfit and (reason or (self._throttle.is_hopeless and len(units) >= FEWEST_UNITS)):
                return units, StopReason.THROTTLED
            if reason:
                return units, reason
            turn += 1

    def _unit(self, order: tuple[str, ...]) -> Unit:
        if self._plan.described.goal not in GOALS:  # what `metrics` return may depend on constants: the interval is one over their seeds
            self._prepare_seed = self._session.new_seed()
        if not self._ahead:
            self._start_ahead(order)
        started = self._ahead.popleft()
        order, workers = started.order, started.workers
        with started.stack.pop_all() as stack:
            warmed = {side: self._warm(workers[side], side) for side in order}
            if not self._is_sized:
                self._is_sized = True
                self._copies = self._copies_for(warmed)
                self._sets = self._sets_for(warmed)
                if max(self._copies.values()) * self._sets > 1:
                    self._prepare_all(workers)
                    warmed = {side: self._warm(workers[side], side) for side in order}
            self._hold &= all(answer.holds for answer in warmed.values())
            passes = self._passes_of(warmed)
            blocks: dict[str, list[Block]] = {side: [] for side in order}
            ran: list[str] = []
            looked_at = draw_looks(sum(1 for size in passes[order[0]] if size))
            self._spans = {side: [] for side in order}
            checked = {side: len(self._checks[side]) for side in order}
            for place, sides in enumerate((order, tuple(reversed(order)))):
                for side in sides:
                    if count := passes[side][place]:
                        take = functools.partial(self._block, workers[side], side, count, looked_at[place])
                        blocks[side].append(self._throttle.take(take))
                        ran.append(side)
            self._done += workers.values()
            if not self._ahead:  # else they are held still: a context that ends would disturb those that are timed
                for worker in self._done:
                    worker.begin_close()
                self._done.clear()
            self._leaving.push(stack.pop_all())
        for side, spans in self._spans.items():
            self._wall_clock.saw(side, spans)
        unit = Unit(order=tuple(ran), blocks={side: tuple(taken) for side, taken in blocks.items()})
        return self._with_figures(unit, checked)

    def _with_figures(self, unit: Unit, checked: Mapping[str, int]) -> Unit:
        """The unit with what its sides have of the row's goal; of each, as many calls as `checked` says were judged before it."""
        goal = self._plan.described.goal
        watts = {side: [block.watts for block in blocks if block.watts] for side, blocks in unit.blocks.items()}
        joules = {side: statistics.fmean(known) * median_ns(unit, side) / 1e9 for side, known in watts.items() if known}
        figures = figures_for(
            goal,
            peaks=self._peaks,
            checks={side: self._checks[side][count:] for side, count in checked.items()},
            joules=joules,
            metrics=self._metrics,
        )
        gains = gains_from(figures, better_of(goal, self._metrics))
        return unit.model_copy(update={"figures": figures, "gains": gains, "joules": joules})

    def _units_at_once(self, units: Sequence[Unit]) -> int:
        """How many units' workers start side by side, to be timed one unit after the other: several where compiled code is slow to load.

        The first unit starts alone: it tells how long that takes, and what its workers hold.
        """
        plan = self._plan
        is_plain = plan.device == "cuda" and plan.ranks == 1 and plan.described.goal == TIME and not plan.described.places
        if not (self._calls_first and self._is_sized and is_plain and self._prepare_s > DEAR_S):
            return 1
        held = sum(CONTEXT_BYTES + self._sets * self._copies[side] * self._peaks[side] for side in plan.sides)
        on_host = psutil.virtual_memory().available / (CONTEXT_BYTES * len(plan.sides))
        cores = len(os.sched_getaffinity(0)) / len(plan.sides)
        wanted = self._rule.units_to_go(units, self._prepare_s)
        return int(max(1, min(wanted, cores, AHEAD_SHARE * self._memory_bytes / held, AHEAD_SHARE * on_host)))

    def _start_ahead(self, order: tuple[str, ...]) -> None:
        """Start the workers of the next unit, which begins in that `order`, and of as many behind it as start at once."""
        units = []
        with ExitStack() as until_started:
            for place in range(self._at_once):
                stack = until_started.enter_context(ExitStack())
                sides = order if place % 2 == 0 else tuple(reversed(order))
                workers = {side: stack.enter_context(self._session.fork_side(self._plan, side)) for side in sides}
                units.append(_Started(sides, workers, stack))
            self._make_ready(*(unit.workers for unit in units))
            self._waiting.push(until_started.pop_all())
        self._ahead.extend(units)

    def _start_all(self, order: tuple[str, ...], stack: ExitStack) -> dict[str, SideAtWork]:
        """Fresh workers of one unit."""
        workers = {side: stack.enter_context(self._session.fork_side(self._plan, side)) for side in order}
        self._make_ready(workers)
        return workers

    def _make_ready(self, *units: Mapping[str, SideAtWork]) -> None:
        """Start workers, each step of it side by side: a CUDA context and a `prepare` take longer than the timing."""
        begin = time.monotonic()
        everyone = [worker for workers in units for worker in workers.values()]
        if self._plan.device == "cuda":
            self._open_all(everyone)
        if self._plan.described.goal == MEMORY:
            for workers in units:
                self._weigh_all(workers)
        else:
            for worker in everyone:
                worker.begin_load()
            self._leaving.close()
            for worker in everyone:
                worker.finish_load()
            self._prepare_all(*units)
        self._starting_s += time.monotonic() - begin

    def _weigh_all(self, workers: Mapping[str, SideAtWork]) -> None:
        """Load, prepare and weigh one side after the other: the driver tells what a device has left, and not who took it."""
        self._leaving.close()
        self._prepare_s = 0.0
        for side, worker in workers.items():
            worker.begin_load()
            worker.finish_load()
            prepared = worker.prepare(self._shape, self._prepare_seed, self._session.new_seed())
            self._prepare_s = max(self._prepare_s, prepared.seconds)
            weighed = worker.ask(messages.Weigh(), messages.Weighed, self._left())
            self._peaks[side] = weighed.allocated_bytes + weighed.outside_bytes
            if weighed.outside_bytes:
                self._outside[side] = max(self._outside.get(side, 0), weighed.outside_bytes)

    def _open_all(self, workers: Sequence[SideAtWork]) -> None:
        """Make their contexts while the workers of the units before end; then, with the GPU to itself, each chooses its stream."""
        for worker in workers:
            worker.begin_open()
        self._leaving.close()
        for worker in workers:
            worker.finish_open()
        for worker in workers:
            worker.choose_stream()

    def _prepare_all(self, *units: Mapping[str, SideAtWork]) -> None:
        seconds = []
        sides = [each for workers in units for each in workers.items()]
        for side, worker in sides:
            copies = self._copies[side] * self._sets
            worker.begin_prepare(self._shape, self._prepare_seed, self._session.new_seed(), copies, call=self._calls_first)
            if self._plan.ranks > 1:  # collectives of two sides at once would wait for each other's turns on every GPU
                seconds.append(worker.finish_prepare().seconds)
        if self._plan.ranks == 1:
            seconds = [worker.finish_prepare().seconds for _, worker in sides]
        self._prepare_s = max(seconds)

    def _copies_for(self, warmed: Mapping[str, messages.Warmed]) -> dict[str, int]:
        """How many calls make a sample of each side: enough that the event pair's own cost and the process's offset are small beside them.

        All sides that are short take as many, and one that is not takes one.
        """
        if self._plan.clock != "device" or self._session.settings.warmup == 0 or self._plan.described.goal == MEMORY:
            return dict.fromkeys(warmed, 1)
        enough = min(MOST_COPIES, math.ceil(SHORT_NS / min(answer.step_ns for answer in warmed.values())))
        return {side: enough if answer.step_ns < SHORT_NS else 1 for side, answer in warmed.items()}

    def _sets_for(self, warmed: Mapping[str, messages.Warmed]) -> int:
        """How many sets of buffers samples take turns at: that a process's are where they are is then no property of its side."""
        described, settings = self._plan.described, self._session.settings
        if self._plan.clock != "device" or described.cache == "hot" or described.goal == MEMORY or described.places:
            return 1  # pinned memory is scarce, and where it lies is all the same to a copy over the bus
        if self._sustained or settings.warmup == 0:
            return 1
        samples = sum(self._passes(max(answer.sample_ns for answer in warmed.values())))
        most = min(MOST_SETS // max(self._copies.values()), samples)
        needed = sum(self._copies[side] * answer.peak_memory_bytes for side, answer in warmed.items())
        in_room = SETS_SHARE * self._memory_bytes / max(1, needed)
        in_time = 1 + SETS_PREPARE_S / max(self._copies[side] * (self._prepare_s + answer.call_s) for side, answer in warmed.items())
        return int(max(1, min(most, in_room, in_time)))

    def _passes_of(self, warmed: Mapping[str, messages.Warmed]) -> dict[str, tuple[int, int]]:
        """How many samples each side's two blocks have: as many as fit a block, of the baseline only as many as of the slowest side.

        Of few samples of a quick step the first of a block counts too much, and so does one that is looked at, which may take 1.1 us a
        launch longer. What a block costs beside its samples is in the parent's clock, and most in that of few: that must be the baseline's.
        """
        fewest = self._passes(max(answer.sample_ns for answer in warmed.values()))
        return {side: fewest if side == BASELINE else self._passes(answer.sample_ns) for side, answer in warmed.items()}

    def _passes(self, sample_ns: float) -> tuple[int, int]:
        iterations = self._session.settings.iterations
        if iterations is not None:
            return iterations - iterations // 2, iterations // 2
        if self._sustained:
            return 1, 1
        # Without a warm-up nothing is known of the step's length. Samples by the host's clock are far apart, so no unit has only two.
        least = 1 if self._plan.clock == "device" else FEW_SAMPLES
        of_gpus = self._plan.ranks > 1 and self._plan.device == "cuda"
        block_s, most = (RANKS_BLOCK_S, MOST_RANKS_SAMPLES) if of_gpus else (BLOCK_S, MOST_SAMPLES)
        count = max(least, min(most, int(block_s * 1e9 / sample_ns))) if sample_ns > 0 else FEW_SAMPLES
        return count, count

    def _warm(self, worker: SideAtWork, side: str) -> messages.Warmed:
        warmup = self._session.settings.warmup
        calls = -1 if warmup is None else warmup
        request = messages.Warm(
            seed=self._session.new_seed(),
            calls=calls,
            seconds=WARM_S,
            hold=self._hold and calls != 0,
            cores=self._cores,
            calls_per_sample=self._copies[side],
        )
        warmed = worker.ask(request, messages.Warmed, self._left())
        self._peaks.setdefault(side, warmed.peak_memory_bytes)  # of a memory row it was weighed
        self._metrics[side] = warmed.metrics
        self._numa_nodes.update(warmed.numa_nodes)
        return warmed

    def _block(self, worker: SideAtWork, side: str, count: int, looks: int) -> Block:
        calls = count * self._copies[side]
        # A sustained block leaves the outputs of its last call, on inputs that all its calls shared.
        looked_at = sorted(random.sample(range(count), min(looks, count)))
        picks = [sample * self._copies[side] + random.randrange(self._copies[side]) for sample in looked_at]
        request = messages.Time(
            seed=self._session.new_seed(),
            count=count,
            picks=picks,
            prefix=self._session.dump_prefix(),
            hold=self._hold,
            sustained=self._sustained,
        )
        begin = time.monotonic()
        timed = worker.ask(request, messages.Timed, self._left())
        end = time.monotonic()
        wall_s = end - begin
        self._notes.update(timed.notes)
        self._spreads_ns[side] += timed.began_ns if worker.ranks > 1 else []
        watts = self._telemetry.watts(begin, end) if self._sustained else None
        if len(timed.samples_ns) != count or not all(0 < sample < math.inf for sample in timed.samples_ns):
            raise SideFailure(Status.CRASHED, f"{side}: found {len(timed.samples_ns)} samples; expected {count} positive times")
        if len(timed.picks) != len(picks) * worker.ranks:
            raise SideFailure(Status.CRASHED, f"{side}: found {len(timed.picks)} kept outputs; expected {len(picks) * worker.ranks}")
        self._checks[side] += self._judging.judge(side, self._shape, self._prepare_seed, timed.picks, timed=True)
        self._behind_ns[side] += [call.behind_ns for call in timed.picks]
        queued_s = min(timed.queued_ns, calls * messages.MOST_QUEUED_NS) / 1e9
        self._spans[side].append(Span(wall_s, sum(timed.samples_ns) * self._copies[side] / 1e9, count, queued_s, looks))
        clocks = tuple(timed.sm_clock_hz)
        return Block(seed=request.seed, samples_ns=tuple(timed.samples_ns), sm_clock_hz=clocks, void=timed.void, watts=watts)

    def _cold_unit(self, order: tuple[str, ...]) -> Unit:
        """Every sample is a fresh process: from loading the side to its first result, with compile caches of its own."""
        blocks: dict[str, list[Block]] = {side: [] for side in order}
        count = self._session.settings.iterations or 1
        for _ in range(count):
            for side in order:
                with self._session.start_side(self._plan, side, cold=True) as worker:
                    prepared = worker.prepare(self._shape, self._prepare_seed, seed := self._session.new_seed())
                    check = messages.Check(seeds=[seed], prefix=self._session.dump_prefix())
                    checked = worker.ask(check, messages.Checked, self._left())
                    self._checks[side] += self._judging.judge(side, self._shape, self._prepare_seed, checked.calls, timed=True)
                    total_s = worker.load_s + prepared.seconds + checked.first_call_s
                    blocks[side].append(Block(seed=seed, samples_ns=(total_s * 1e9,)))
        unit = Unit(order=order * count, blocks={side: tuple(found) for side, found in blocks.items()})
        if not self._plan.is_cold or BASELINE not in blocks:
            return unit
        ready_ns = {side: median_ns(unit, side) for side in order}
        return unit.model_copy(update={"gains": {side: ready_ns[BASELINE] / ns for side, ns in ready_ns.items() if side != BASELINE}})

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise SideFailure(Status.TIMEOUT, "the next request had no time left")
        return left

    def _running_estimate(self, units: Sequence[Unit]) -> str:
        if len(units) < 2:
            return "1 process pair"
        found = ", ".join(
            f"{side} {speedup.estimate:.3f}x ± {speedup.half_width_percent:.1f} %" for side, speedup in speedups_of(units).items()
        )
        return f"{len(units)} process pairs: {found}" if found else f"{len(units)} processes"


_TRIAL_S = 2e-3
_MOST = 16  # of a large machine's, evenly spread
_ROUNDS = 1000


def fastest_core(cores: Sequence[int]) -> int:
    """Of `cores`, all of which this thread may use, the one that did the most work in a few milliseconds each."""
    allowed = os.sched_getaffinity(0)
    tried = cores[:: -(-len(cores) // _MOST)]
    try:
        return max(tried, key=_work_on)
    finally:
        os.sched_setaffinity(0, allowed)


def _work_on(core: int) -> int:
    os.sched_setaffinity(0, {core})
    done, deadline = 0, time.perf_counter() + _TRIAL_S
    while time.perf_counter() < deadline:
        sum(range(_ROUNDS))
        done += 1
    return done
