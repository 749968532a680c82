"""What each side of a unit has of a goal other than time, and how many times better than the baseline's that is."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from common.python.pairs.goals import ACCURACY, ENERGY, MEMORY, NEITHER, UNITS
from common.python.results import BASELINE, Check, ReportedMetric

LOWER = "lower"


def figures_for(
    goal: str,
    *,
    peaks: Mapping[str, int],
    checks: Mapping[str, Sequence[Check]],
    joules: Mapping[str, float],
    metrics: Mapping[str, Mapping[str, ReportedMetric]],
) -> dict[str, float]:
    """The figure of each side that has one: of `checks` those of timed calls of the unit count. None for time and set-up."""
    if goal == MEMORY:
        return {side: float(peak) for side, peak in peaks.items()}
    if goal == ACCURACY:
        errors = {side: [error for check in found if (error := error_of(check)) is not None] for side, found in checks.items()}
        return {side: statistics.fmean(each) for side, each in errors.items() if each}
    if goal == ENERGY:
        return dict(joules)
    return {side: each[goal].value for side, each in metrics.items() if goal in each}


def error_of(check: Check) -> float | None:
    """The root mean square error of a call's outputs over that of the reference, of several outputs the largest; None without any."""
    known = [error.rms_rel for error in check.outputs.values() if error.rms_rel is not None]
    return max(known, default=None)


def unit_of(goal: str, metrics: Mapping[str, Mapping[str, ReportedMetric]]) -> str:
    """The unit of those figures."""
    return UNITS.get(goal) or next((each[goal].unit for each in metrics.values() if goal in each), "")


def gains_from(figures: Mapping[str, float], better: str = LOWER) -> dict[str, float]:
    """How many times better than the baseline's the figure of every other side is; none where one is not above 0, or no way is better."""
    if better == NEITHER:
        return {}
    base = figures.get(BASELINE, 0.0)
    ratios = {side: base / figure for side, figure in figures.items() if side != BASELINE and figure > 0 and base > 0}
    return ratios if better == LOWER else {side: 1 / ratio for side, ratio in ratios.items()}


def better_of(goal: str, metrics: Mapping[str, Mapping[str, ReportedMetric]]) -> str:
    """Whether a lower or a higher figure is better, or neither; of all that the harness measures itself a lower one."""
    return next((each[goal].better for each in metrics.values() if goal in each), LOWER)
