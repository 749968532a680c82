"""Figures that a workload or a serving side reports of itself, as the harness keeps them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import get_args

from common.python.errors import BenchmarkError
from common.python.pairs.workload import Better, Metric
from common.python.results import ReportedMetric


def metrics_of(metrics: object, where: str) -> dict[str, Metric]:
    """What was reported, by name, its values as floats, which may be any where nothing was timed.

    Raises BenchmarkError, which begins with `where`, for what is no figure.
    """
    if not isinstance(metrics, Mapping):
        raise BenchmarkError(f"{where}: found a {type(metrics).__name__}; expected a dict of names to Metric")
    return {str(name): _metric(metric, f"{where}: {name}") for name, metric in metrics.items()}


def reported_of(metrics: object, where: str) -> dict[str, ReportedMetric]:
    """The same to be kept. Raises BenchmarkError also for a value that is not finite."""
    found = metrics_of(metrics, where)
    for name, metric in found.items():
        if not math.isfinite(metric.value):
            raise BenchmarkError(f"{where}: {name}: value={metric.value}; expected a finite number")
    return {name: ReportedMetric(value=metric.value, unit=metric.unit, better=metric.better) for name, metric in found.items()}


def _metric(metric: object, where: str) -> Metric:
    if not isinstance(metric, Metric):
        raise BenchmarkError(f"{where}: found a {type(metric).__name__}; expected a Metric(value, unit, better)")
    if metric.better not in get_args(Better):
        raise BenchmarkError(f"{where}: better={metric.better!r}; expected {' or '.join(get_args(Better))}")
    if not isinstance(metric.unit, str):
        raise BenchmarkError(f"{where}: unit={metric.unit!r}; expected a text")
    try:
        return Metric(float(metric.value), metric.unit, metric.better)
    except (TypeError, ValueError, RuntimeError) as error:  # the last of a tensor of several elements
        raise BenchmarkError(f"{where}: value={metric.value!r}; expected a number") from error
