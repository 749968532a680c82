"""When a measurement has enough units: the gate has decided, the interval is narrow, or units or time are used up.

A block in which the device ran hot is taken again after a pause, and a device that stays hot ends the measurement.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from common.python.gate.expectations import LEAST_ACCEPTED_UNITS
from common.python.gate.noise_floor import StepClass
from common.python.gate.statistics import (
    LEAST_UNITS,
    LOOK_EVERY,
    MOST_UNITS,
    Known,
    gains_of,
    gated_by,
    gated_logs,
    ratio_interval,
    rungs_between,
    rungs_of,
    speedups_of,
    times_of,
)
from common.python.gate.verdicts import Allowance, Standard, Standards, more_units, widest_accepted
from common.python.pairs.goals import ENERGY, MEMORY, OF_A_GPU, SETUP
from common.python.results import OPTIMIZED, Block, StopReason, TelemetrySummary, Unit
from common.python.session.planning import Plan
from common.python.settings import Settings

BUDGET_S = 5.0  # a side
_SLOWER = 1.02  # than the mean so far may units be that are to come: two of 80 measurements on H200s ended 0.6 and 1.3 % late
_LIKELY = 1.2  # times as long as those so far units may take that are to end before the row's limit
FEW_UNITS = 4  # both orders twice: a fresh process may compile for half a minute, joules take seconds, bytes are the same in any
SERVING_BUDGET_S = 25.0  # a side, whose traces take seconds
ACCEPTING_BUDGET_S = 40.0  # of a row, each `prepare` included; one that is too wide to be accepted then goes on
DEAR_S = 2.0  # a `prepare` that takes longer allows as few units as there is a variance from
PRECISE_PERCENT = 0.25
# Steps whose noise may not let the interval become that narrow: this, unless their floor is kept.
NOISY_PERCENT = {StepClass.SHORT: 1.0, StepClass.LAUNCH: 0.5, StepClass.HOST: 0.5, StepClass.SETUP: 5.0, StepClass.SERVING: 3.0}
NOISY_ENERGY_PERCENT = 2.0  # what a counter that advances every 0.1 s can tell of a few seconds


class StopRule:
    """The rule for one timing. It looks after an even number of units, when both orders are equally many."""

    def __init__(self, settings: Settings, standards: Standards, plan: Plan, shape: str) -> None:
        self._standards = standards
        self._plan = plan
        self._fixed = settings.iterations is not None or settings.cold_start
        self._accepting = settings.accept_regressions and not standards.refuses(plan, shape)
        self._standard = None if self._accepting else standards.of(plan, shape)

    def reason(
        self, units: Sequence[Unit], timed_s: float, prepare_s: float, *, load_s: float = 0.0, is_held: bool, left_s: float = math.inf
    ) -> StopReason | None:
        """Why these are enough units, or None; `timed_s` were spent on them, `prepare_s` on the last unit's slowest `prepare`.

        Where sides are compiled that `prepare` is within `timed_s`, and is `load_s`. `is_held`: no launch latency is in their times.
        `left_s` are left of the row's limit, at which units that are not done are lost.
        """
        count = len(units)
        if self._fixed:
            return StopReason.FIXED if count >= LEAST_UNITS else None
        if count < self._least(units, prepare_s + load_s) or count % LOOK_EVERY:
            return None
        spent_s = timed_s + count * prepare_s
        if reason := self._accepting_reason(units, spent_s, is_held=is_held) if self._accepting else self._enough(units, timed_s):
            return reason
        return StopReason.TIME_BUDGET if left_s < _LIKELY * spent_s * LOOK_EVERY / count else None

    def units_to_go(self, units: Sequence[Unit], prepare_s: float) -> int:
        """How many more units there will be for certain, or until the next look: fewer are not enough."""
        count = len(units)
        least = LEAST_UNITS if self._fixed else self._least(units, prepare_s)
        may_be_known = self._standards.noise.floors and not (self._fixed or self._accepting)
        if count < LOOK_EVERY and prepare_s > DEAR_S and may_be_known:
            least = LOOK_EVERY  # which tell of what class the steps are
        return least - count if count < least else LOOK_EVERY - count % LOOK_EVERY

    def _enough(self, units: Sequence[Unit], timed_s: float) -> StopReason | None:
        count = len(units)
        if self._standard and gated_logs(units, self._standard.goal):
            if reason := self._gated_reason(self._standard, units, timed_s):
                return reason
        else:
            allowance = self._standards.allowance(self._plan, units)
            if self._half_width_percent(units, allowance.known) <= self._precise_percent(allowance):
                return StopReason.PRECISE
        if count >= MOST_UNITS:
            return StopReason.UNIT_CAP
        return StopReason.TIME_BUDGET if _ends_by_the_next_look(self._budget_s, timed_s, count) else None

    def _accepting_reason(self, units: Sequence[Unit], spent_s: float, *, is_held: bool) -> StopReason | None:
        """Why these are enough units to accept, or None: ten that are narrow, or six of a dear row that may be accepted as it is."""
        count, allowance = len(units), self._standards.allowance(self._plan, units)
        half_width = self._half_width_percent(units, allowance.known)
        if count >= LEAST_ACCEPTED_UNITS and half_width <= allowance.band_percent / 2:
            return StopReason.PRECISE
        if count >= MOST_UNITS:
            return StopReason.UNIT_CAP
        is_late = _ends_by_the_next_look(ACCEPTING_BUDGET_S, spent_s, count)
        widest = max(allowance.band_percent, widest_accepted(self._plan, is_held=is_held))
        return StopReason.TIME_BUDGET if is_late and half_width <= widest / 2 else None

    @property
    def _budget_s(self) -> float:
        return (SERVING_BUDGET_S if self._plan.serves else BUDGET_S) * len(self._plan.sides)

    def _gated_reason(self, standard: Standard, units: Sequence[Unit], timed_s: float) -> StopReason | None:
        """Why the gate needs no further unit, or None.

        A ladder whose speedup is decided goes on for a rung only while the units that are left, by number and by time, are foreseen to
        decide it if they go on like those that are there; else what would have ended it ends it now, and the rung stays undecided.
        """
        allowance = self._standards.allowance(self._plan, units)
        band = max(allowance.band_percent, standard.least_band)
        undecided = [
            side for side, change in standard.changes(units, band, allowance.known).items() if not standard.is_decided(side, change)
        ]
        if not undecided:
            return StopReason.DECIDED
        if OPTIMIZED in undecided:
            return None
        in_time = int(len(units) * self._budget_s / timed_s)
        most = min(in_time, MOST_UNITS)
        if any(more_units(units, standard.goal, side, standard.sides[side], band, most) is not None for side in undecided):
            return None
        return StopReason.TIME_BUDGET if in_time < MOST_UNITS else StopReason.UNIT_CAP

    def _least(self, units: Sequence[Unit], prepare_s: float) -> int:
        if self._accepting:
            return LEAST_UNITS
        if self._plan.serves or self._plan.described.goal in (SETUP, MEMORY, ENERGY):
            return FEW_UNITS
        dear = prepare_s > DEAR_S and len(units) >= LOOK_EVERY and self._standards.allowance(self._plan, units).known is not None
        return LOOK_EVERY if dear else LEAST_UNITS

    def _half_width_percent(self, units: Sequence[Unit], known: Known | None) -> float:
        goal = self._plan.described.goal
        if self._accepting:  # what is kept are the gated figures
            gated = [sides for side in (OPTIMIZED, *rungs_between(self._plan.sides)) for sides in gated_by(side)]
            intervals = [ratio_interval(units, goal, sides, known) for sides in gated if len(gated_logs(units, goal, sides)) == len(units)]
        else:
            times = {} if goal in OF_A_GPU or self._plan.serves else speedups_of(units, known)  # that are shown beside what counts
            figures = times, gains_of(units, known), rungs_of(units, self._plan.sides, goal, known)
            intervals = [interval for each in figures for interval in each.values()]
        return max(interval.half_width_percent for interval in intervals or times_of(units, known).values())

    def _precise_percent(self, allowance: Allowance) -> float:
        if self._plan.described.goal == ENERGY:
            return NOISY_ENERGY_PERCENT
        if allowance.step not in NOISY_PERCENT:
            return PRECISE_PERCENT
        return NOISY_PERCENT[allowance.step] if allowance.floor_percent is None else allowance.floor_percent


def _ends_by_the_next_look(budget_s: float, spent_s: float, count: int) -> bool:
    return spent_s * (count + LOOK_EVERY) / count * _SLOWER > budget_s


SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.5
MOST_LOST_S = 30.0
MOST_DISCARDED = 0.25  # of all blocks


class Watch(Protocol):
    """Who knows what the GPUs did."""

    def summary(self, since: float = 0.0) -> TelemetrySummary:
        """Everything from `since` (of `time.monotonic`, seconds) until now."""


class Throttle:
    """Takes blocks of samples, and counts those that a thermal or hardware slowdown spoilt. A power cap spoils nothing."""

    def __init__(self, watch: Watch, sleep: Callable[[float], None] = time.sleep) -> None:
        self._watch = watch
        self._sleep = sleep
        self._taken = 0
        self._lost_s = 0.0
        self.discarded = 0

    def take(self, block: Callable[[], Block]) -> Block:
        """A block that ran at full clocks; once too much time is lost, whatever block there is: there are never no samples."""
        pause = SHORTEST_PAUSE_S
        while True:
            begin = time.monotonic()
            taken = block()
            self._taken += 1
            if self.is_hopeless or not self._watch.summary(begin).throttled:
                return taken
            self.discarded += 1
            self._sleep(pause)
            self._lost_s += time.monotonic() - begin
            pause = min(2 * pause, LONGEST_PAUSE_S)

    @property
    def is_hopeless(self) -> bool:
        """Whether so much time was lost that nothing more is taken again."""
        return self._lost_s >= MOST_LOST_S

    @property
    def is_unfit(self) -> bool:
        """Whether the device throttled too much for what was measured to count."""
        return self.is_hopeless or self.discarded > MOST_DISCARDED * self._taken
