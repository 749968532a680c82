"""Figures that a workload or a serving side reports of itself, as the harness keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from common.python.errors import BenchmarkError
from common.python.pairs.workload import Better, Metric
from common.python.results import ReportedMetric


def reported_of(metrics: object, where: str) -> dict[str, ReportedMetric]:
    """What was reported, by name. Raises BenchmarkError, which begins with `where`, for what is no figure."""
    if not isinstance(metrics, Mapping):
        raise BenchmarkError(f"{where}: found a {type(metrics).__name__}; expected a dict of names to Metric")
    return {str(name): _reported(metric, f"{where}: {name}") for name, metric in metrics.items()}


def _reported(metric: object, where: str) -> ReportedMetric:
    if not isinstance(metric, Metric):
        raise BenchmarkError(f"{where}: found a {type(metric).__name__}; expected a Metric(value, unit, better)")
    if metric.better not in get_args(Better):
        raise BenchmarkError(f"{where}: better={metric.better!r}; expected {' or '.join(get_args(Better))}")
    if not isinstance(metric.unit, str):
        raise BenchmarkError(f"{where}: unit={metric.unit!r}; expected a text")
    try:
        value = float(metric.value)
    except (TypeError, ValueError, RuntimeError) as error:  # the last of a tensor of several elements
        raise BenchmarkError(f"{where}: value={metric.value!r}; expected a number") from error
    return ReportedMetric(value=value, unit=metric.unit, better=metric.better)
