"""Intervals: the process pair is the unit, log ratios are averaged, and Student's t gives the width."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from common.python.results import Interval

_CONFIDENCE = 0.95


def t_quantile(degrees: int, probability: float) -> float:
    """Quantile of Student's t with `degrees` of freedom."""
    from scipy.special import stdtrit  # imported when a run has data: it costs more than listing targets takes

    return float(stdtrit(degrees, probability))


def geometric_interval(values: Sequence[float]) -> Interval:
    """Geometric mean of positive `values`, one a unit, with its 95 % interval; needs at least two.

    A ratio of two sides is such a value, and so is one side's median time.
    """
    logs = [math.log(value) for value in values]
    center = statistics.fmean(logs)
    half = t_quantile(len(logs) - 1, 0.5 + _CONFIDENCE / 2) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(estimate=math.exp(center), low=math.exp(center - half), high=math.exp(center + half))
