"""The gate's statistics: intervals of ratios, how far one mean of log ratios lies from another, and when a change is decided.

A process pair is one log ratio; more is better, and Student's t gives the interval. A measurement is looked at after 6, 8, ... 24 units,
and stops at the first look whose whole interval lies inside or beyond the band. Ten looks with 95 % intervals would put 7 to 9 % of true
changes at the band's edge on either side of it (simulated: unit sd 0.25 and 0.45 %, a band of 0.5 %, 24 stored units or none). So each
look has a 99 % interval, close to Pocock's constant boundary for ten looks (98.94 %), and all looks together keep 2.5 % on either side:
2.0 to 2.4 % simulated. A planted 1 % is then called REGRESSED in 100 and 91 % of measurements at those two deviations, and a change of
nothing never is. The tests repeat the simulation.
"""

from __future__ import annotations

import importlib
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread
from typing import Final, Self

from common.python.pairs.goals import TIME
from common.python.results import BASELINE, OPTIMIZED, Change, Interval, PairTiming, Unit, VerdictKind

_CONFIDENCE = 0.95
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
    """The median time in ns over all samples of `side` in one unit, a pair of processes."""
    return statistics.median(sample for block in unit.blocks[side] for sample in block.samples_ns)


def times_of(units: Sequence[Unit], known: Known | None = None) -> dict[str, Interval]:
    """The time of every side in ns: the geometric mean of its medians, one a unit, with its 95 % interval."""
    return {side: geometric_interval([median_ns(unit, side) for unit in units], known) for side in sorted(units[0].blocks)}


def speedups_of(units: Sequence[Unit], known: Known | None = None) -> dict[str, Interval]:
    """The speedup of every other side over the baseline: the geometric mean of one ratio a unit, with its 95 % interval.

    Empty if the baseline was not measured, as for a target that names one side alone.
    """
    sides = units[0].blocks
    if BASELINE not in sides:
        return {}
    others = sorted(side for side in sides if side != BASELINE)
    return {side: geometric_interval([median_ns(unit, BASELINE) / median_ns(unit, side) for unit in units], known) for side in others}


def gains_of(units: Sequence[Unit], known: Known | None = None) -> dict[str, Interval]:
    """How many times better than the baseline every other side is at a goal other than time; only what every unit knows."""
    sides = sorted(side for side in units[0].gains if all(side in unit.gains for unit in units))
    return {side: geometric_interval([unit.gains[side] for unit in units], known) for side in sides}


def figures_of(units: Sequence[Unit], known: Known | None = None) -> dict[str, Interval]:
    """What each side has of a goal other than time, in the goal's own unit; only what every unit knows."""
    sides = [side for side in units[0].figures if all(unit.figures.get(side, 0.0) > 0 for unit in units)]
    return {side: geometric_interval([unit.figures[side] for unit in units], known) for side in sides}


def joules_of(units: Sequence[Unit]) -> dict[str, Interval]:
    """The joules that a step of each side took; of a side whose energy every unit knows."""
    sides = [side for side in units[0].joules if all(unit.joules.get(side, 0.0) > 0 for unit in units)]
    return {side: geometric_interval([unit.joules[side] for unit in units]) for side in sides}


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


LEAST_UNITS, MOST_UNITS = 6, 24
LOOK_EVERY = 2  # units: orders A B B A and B A A B are then equally many

LOOK_CONFIDENCE = 0.99
FALSE_DISCOVERY = 0.01

FORESEEN_UNITS = 1000


NO_CHANGE: Final = Mean(0.0, 0.0, 1.0)
"""What two sides with the same code are expected to show."""


@dataclass(frozen=True)
class Difference:
    """Measured less expected, with its standard error and Welch's degrees of freedom."""

    value: float
    error: float
    degrees: float

    @classmethod
    def between(cls, measured: Mean, expected: Mean) -> Self:
        """Welch's: the two variances need not be alike."""
        variance = measured.variance + expected.variance
        parts = sum(mean.variance**2 / mean.degrees for mean in (measured, expected))
        return cls(measured.value - expected.value, math.sqrt(variance), variance**2 / parts if parts else 1.0)

    @property
    def half_width(self) -> float:
        """Of the interval of one look."""
        return t_quantile(self.degrees, 0.5 + LOOK_CONFIDENCE / 2) * self.error

    def change(self, band_percent: float) -> Change:
        """What a band of `band_percent` on either side of no change makes of it."""
        return change_in_all([self], band_percent)

    def p_beyond(self, bound: float) -> float:
        """One-sided: how likely a difference this low is where the truth is `bound`."""
        if not self.error:
            return float(self.value >= bound)
        return t_probability(self.degrees, (self.value - bound) / self.error)


def change_in_all(differences: Sequence[Difference], band_percent: float) -> Change:
    """One change that was seen in several ways: better or worse beyond the band only if each of them says so.

    It is an intersection-union test (R. L. Berger, Technometrics 24, 1982): the probability is the largest of theirs, and it counts as
    one test however many they are. What it is not, any one of them may rule out. Its estimate is that of the smallest of them.
    """
    band = math.log1p(band_percent / 100)
    lows, highs = ([each.value + sign * each.half_width for each in differences] for sign in (-1, 1))
    if max(highs) < -band:
        kind = VerdictKind.REGRESSED
    elif min(lows) > band:
        kind = VerdictKind.IMPROVED
    else:
        kind = VerdictKind.SAME if max(lows) >= -band and min(highs) <= band else VerdictKind.INCONCLUSIVE
    least = min(differences, key=lambda each: abs(each.value))
    estimate, low, high = (100 * math.expm1(least.value + sign * least.half_width) for sign in (0, -1, 1))
    p_worse = max(each.p_beyond(-band) for each in differences)
    return Change(kind=kind, percent=Interval(estimate=estimate, low=low, high=high), band_percent=band_percent, p_worse=p_worse)


def may_be_worse(change: Change) -> bool:
    """Whether the figure may still be worse by more than the band: the change's interval reaches beyond the band on the bad side."""
    return change.p_worse < 0.5 + LOOK_CONFIDENCE / 2


def is_told(change: Change) -> bool:
    """Whether the change is decided: IMPROVED, REGRESSED or SAME, not INCONCLUSIVE."""
    return change.kind is not VerdictKind.INCONCLUSIVE


def units_needed(
    ratios: Sequence[tuple[Sequence[float], Mean]],
    band_percent: float,
    decides: Callable[[Change], bool] = is_told,
    most: int = FORESEEN_UNITS,
) -> int | None:
    """How many more units would decide, if the mean and the deviation of every ratio stay as seen; None if not even `most` in all would.

    A ratio is the logs that were measured and what they are held to; several make one change, as in `change_in_all`.
    """
    seen = [(statistics.fmean(logs), statistics.variance(logs), expected) for logs, expected in ratios]
    done = len(ratios[0][0])
    for count in range(done + LOOK_EVERY, most + 1, LOOK_EVERY):
        foreseen = [Difference.between(Mean(mean, variance / count, count - 1), expected) for mean, variance, expected in seen]
        if decides(change_in_all(foreseen, band_percent)):
            return count - done
    return None


def discoveries(probabilities: Sequence[float], rate: float = FALSE_DISCOVERY) -> list[bool]:
    """Which of many tests stand, so that a share of at most `rate` of those that do is expected to be false: Benjamini-Hochberg."""
    order = sorted(range(len(probabilities)), key=lambda index: probabilities[index])
    passing = [rank for rank, index in enumerate(order, start=1) if probabilities[index] <= rate * rank / len(probabilities)]
    stand = set(order[: max(passing, default=0)])
    return [index in stand for index in range(len(probabilities))]
