"""The gate's statistics: how far a mean of log ratios lies from another, and whether that is inside, beyond or astride a band.

A process pair is one log ratio; more is better. A measurement is looked at after 6, 8, ... 24 units, and stops at the first look
whose whole interval lies inside or beyond the band. Ten looks with 95 % intervals would put 7 to 9 % of true changes at the band's
edge on either side of it (simulated: unit sd 0.25 and 0.45 %, a band of 0.5 %, 24 stored units or none). So each look has a 99 %
interval, close to Pocock's constant boundary for ten looks (98.94 %), and all looks together keep 2.5 % on either side: 2.0 to
2.4 % simulated. A planted 1 % is then called REGRESSED in 100 and 91 % of measurements at those two deviations, and a change of
nothing never is. The tests repeat the simulation.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from common.python.gate.statistics import Mean, t_probability, t_quantile
from common.python.results import Change, Interval, VerdictKind

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
    """Whether its look leaves it open that the figure is worse by more than the band: the interval reaches beyond it on the bad side."""
    return change.p_worse < 0.5 + LOOK_CONFIDENCE / 2


def is_told(change: Change) -> bool:
    """Whether its look tells on which side of the band's edges the figure is."""
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
