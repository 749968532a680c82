"""Intervals: the process pair is the unit, log ratios are averaged, and Student's t gives the width."""

from __future__ import annotations

import importlib
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread
from typing import Final, Self

from common.python.results import BASELINE, OPTIMIZED, Interval, PairTiming, Unit

_CONFIDENCE = 0.95
TIME = "time"  # the goal of a workload that names no other
PAIR: Final = (BASELINE, OPTIMIZED)


def load_ahead() -> None:
    """Import in the background what the quantiles come from: it takes most of a second, for which the first interval would wait."""
    Thread(target=importlib.import_module, args=("scipy.special",), daemon=True).start()


def t_quantile(degrees: float, probability: float) -> float:
    """Quantile of Student's t with `degrees` of freedom."""
    from scipy.special import stdtrit  # imported when a run has data: it costs more than listing targets takes

    return float(stdtrit(degrees, probability))


def t_probability(degrees: float, quantile: float) -> float:
    """Probability that Student's t with `degrees` of freedom is at most `quantile`."""
    from scipy.special import stdtr

    return float(stdtr(degrees, quantile))


@dataclass(frozen=True)
class Known:
    """A standard deviation of log ratios between process pairs that was measured before, with its degrees of freedom."""

    deviation: float
    degrees: int


@dataclass(frozen=True)
class Mean:
    """A mean of logs, its own variance, and the degrees of freedom that the variance rests on."""

    value: float
    variance: float
    degrees: float

    @classmethod
    def of(cls, logs: Sequence[float], known: Known | None = None) -> Self:
        """The mean of one log a unit, two or more; with `known`, the deviation is the larger of that and the one seen."""
        seen = statistics.stdev(logs)
        if known is not None and known.deviation >= seen:
            return cls(statistics.fmean(logs), known.deviation**2 / len(logs), known.degrees)
        return cls(statistics.fmean(logs), seen**2 / len(logs), len(logs) - 1)


def geometric_interval(values: Sequence[float], known: Known | None = None) -> Interval:
    """Geometric mean of positive `values`, one a unit, with its 95 % interval; needs at least two.

    A ratio of two sides is such a value, and so is one side's median time.
    """
    mean = Mean.of([math.log(value) for value in values], known)
    half = t_quantile(mean.degrees, 0.5 + _CONFIDENCE / 2) * math.sqrt(mean.variance)
    return Interval(estimate=math.exp(mean.value), low=math.exp(mean.value - half), high=math.exp(mean.value + half))


def median_ns(unit: Unit, side: str) -> float:
    """Median of a side's samples in a unit."""
    return statistics.median(sample for block in unit.blocks[side] for sample in block.samples_ns)


def times_of(units: Sequence[Unit], known: Known | None = None) -> dict[str, Interval]:
    """The time of every side, in ns."""
    return {side: geometric_interval([median_ns(unit, side) for unit in units], known) for side in sorted(units[0].blocks)}


def speedups_of(units: Sequence[Unit], known: Known | None = None) -> dict[str, Interval]:
    """Speedup of every other side over the baseline: the geometric mean of the units' ratios; none for a half."""
    sides = units[0].blocks
    if BASELINE not in sides:
        return {}
    others = sorted(side for side in sides if side != BASELINE)
    return {side: geometric_interval([median_ns(unit, BASELINE) / median_ns(unit, side) for unit in units], known) for side in others}


def gains_of(units: Sequence[Unit], known: Known | None = None) -> dict[str, Interval]:
    """How many times better than the baseline every other side is at a goal other than time; only what every unit knows."""
    sides = sorted(side for side in units[0].gains if all(side in unit.gains for unit in units))
    return {side: geometric_interval([unit.gains[side] for unit in units], known) for side in sides}


def shortest_ns(units: Sequence[Unit]) -> float:
    """The time of the fastest side."""
    return min(time.estimate for time in times_of(units).values())


def gated_logs(units: Sequence[Unit], goal: str, sides: tuple[str, str] = PAIR) -> list[float]:
    """What the gate looks at, one a unit: the log of how much better at `goal` the second of `sides` is; none where it has none."""
    before, after = sides
    if goal != TIME:
        gains = [{BASELINE: 1.0} | unit.gains for unit in units]
        return [math.log(gain[after] / gain[before]) for gain in gains if {before, after} <= gain.keys()]
    if not {before, after} <= units[0].blocks.keys():
        return []
    return [math.log(median_ns(unit, before) / median_ns(unit, after)) for unit in units]


def climb(sides: Sequence[str]) -> list[tuple[str, str]]:
    """Each side of a ladder after the one before it, from the baseline to the optimized one; a pair alone is no ladder."""
    ladder = sides[: sides.index(OPTIMIZED) + 1] if OPTIMIZED in sides else ()
    return list(pairwise(ladder)) if len(ladder) > len(PAIR) else []


def rungs_between(sides: Sequence[str]) -> list[str]:
    """The sides of a ladder between its two ends, the baseline and the optimized side."""
    return [after for _, after in climb(sides) if after != OPTIMIZED]


def gated_by(side: str) -> tuple[tuple[str, str], ...]:
    """The ratios that a side of a ladder is gated by: it is red only if each of them is worse than was accepted, beyond the band.

    The optimized side has one, the pair's own. A rung has two, over the baseline and over the optimized side, the two ends of its
    ladder; the one over the step before it is shown and not gated. So a step that gains or loses changes no verdict but its own: none
    is red because the one before it gained, and none hides behind one that lost. What an end does:
    - It gains: every rung is worse over that end alone, so none is red. The pair's own speedup tells of it: worse if that end is the
      baseline, better if it is the optimized side.
    - It loses: a rung that loses no more than that looks as it did over that end, and is not red. If the end is the optimized side, the
      speedup is red in its place. If it is the baseline, the speedup would not see a loss of the optimized side either: only shares of
      the ceiling do.
    - Both gain: a rung that gains less than both has lost against all that its run can hold it to, and is red.
    """
    return (PAIR,) if side == OPTIMIZED else ((BASELINE, side), (OPTIMIZED, side))


def climbed(timing: PairTiming) -> list[tuple[str, str]]:
    """Each side of the ladder that was timed, after the one before it."""
    return list(pairwise([BASELINE, *timing.rungs]))


def rungs_timed(timing: PairTiming) -> list[str]:
    """The sides of the ladder that was timed, between its two ends."""
    return rungs_between([BASELINE, *timing.rungs])


def rungs_of(units: Sequence[Unit], sides: Sequence[str], goal: str, known: Known | None = None) -> dict[str, Interval]:
    """How many times better at `goal` each of a ladder's `sides` is than the one before; none unless every unit knows all of them."""
    steps = climb(sides)
    if any(len(gated_logs(units, goal, step)) < len(units) for step in steps):
        return {}
    return {step[1]: ratio_interval(units, goal, step, known) for step in steps}


def means_between(units: Sequence[Unit], goal: str, sides: Iterable[str]) -> dict[str, dict[tuple[str, str], Mean]]:
    """What `units` let one expect of the gated ratios of each of `sides`; every unit has to know them."""
    return {side: {ratio: Mean.of(gated_logs(units, goal, ratio)) for ratio in gated_by(side)} for side in sides}


def ratio_interval(units: Sequence[Unit], goal: str, sides: tuple[str, str], known: Known | None = None) -> Interval:
    """How many times better at `goal` the second of `sides` is than the first; every unit has to know it."""
    return geometric_interval([math.exp(log) for log in gated_logs(units, goal, sides)], known)
