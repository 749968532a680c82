"""What requests saw, as a table: a line a load and side, with latencies, throughput, goodput and the queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from common.python.pairs.serving import PERCENTILES
from common.python.results import Interval, PairResult, ServingFigures
from common.python.wording import at_shape, significant

TITLE = "Served requests"


@dataclass(frozen=True)
class ServedLine:
    """A side at one load; latencies in ms as `p50 / p95`, and p99 where ten requests lie beyond it."""

    target: str
    side: str
    load: str
    offered: str
    ttft: str
    tpot: str
    itl: str
    e2e: str
    tokens: str
    requests: str
    goodput: str
    queue: str


COLUMNS: Mapping[str, str] = {
    "target": "target",
    "side": "side",
    "load": "load",
    "offered": ">offered/s",
    "ttft": ">TTFT p50 / p95 ms",
    "tpot": ">TPOT p50 / p95 ms",
    "itl": ">ITL ms",
    "e2e": ">end to end ms",
    "tokens": ">tokens/s",
    "requests": ">requests/s",
    "goodput": ">goodput",
    "queue": ">queue mean / most",
}
"""Titles by field of a line; `>` stands before that of a column of numbers."""

SHORT = ("target", "side", "load", "ttft", "tpot", "tokens", "requests", "goodput")
"""Those of a terminal's table."""


def served_lines(rows: Iterable[PairResult]) -> list[ServedLine]:
    """The lines of all rows that serve requests, in order of their loads."""
    return [
        _line(row.target + at_shape(shape), side, timing.serving, figures)
        for row in rows
        for shape, timing in row.timings.items()
        if timing.serving
        for side, figures in timing.serving.figures.items()
    ]


def _line(target: str, side: str, serving: ServingFigures, figures: Mapping[str, Interval]) -> ServedLine:
    return ServedLine(
        target=target,
        side=side,
        load=_load_text(serving),
        offered="" if serving.offered_per_s is None else significant(serving.offered_per_s),
        ttft=percentiles_text(figures, "ttft_ms"),
        tpot=percentiles_text(figures, "tpot_ms"),
        itl=percentiles_text(figures, "itl_ms"),
        e2e=percentiles_text(figures, "e2e_ms"),
        tokens=significant(figures["output_tokens_per_s"].estimate),
        requests=significant(figures["requests_per_s"].estimate),
        goodput=f"{100 * figures['goodput'].estimate:.1f} %",
        queue=" / ".join(significant(figures[f"queue_depth.{name}"].estimate) for name in ("mean", "max")),
    )


def _load_text(serving: ServingFigures) -> str:
    """What was offered, as a share of saturation or in requests per second."""
    if serving.offered_per_s is None:
        return "all at once"
    if serving.saturation_per_s is None:
        return f"{significant(serving.offered_per_s)}/s"
    return f"{serving.offered_per_s / serving.saturation_per_s:.3g} of {significant(serving.saturation_per_s)}/s"


def percentiles_text(figures: Mapping[str, Interval], name: str) -> str:
    """The percentiles of a latency that there are, in its unit: `12.3 / 45.6`; empty where it has none."""
    found = (figures.get(f"{name}.{label}") for label in PERCENTILES)
    return " / ".join(significant(interval.estimate) for interval in found if interval)
