"""A run's results as CSV, a line a target, shape and side: for a spreadsheet, or a data frame. Samples are in metrics.json alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from common.python.results import BASELINE, OPTIMIZED, Interval, PairResult, PairTiming, Share

COLUMNS = (
    *("target", "shape", "side", "file", "status", "verdict"),
    *("time_ns", "time_low_ns", "time_high_ns", "speedup", "speedup_low", "speedup_high"),
    *("goal", "figure", "figure_low", "figure_high", "unit", "gain", "gain_low", "gain_high"),
    *("ceiling", "share_of_ceiling", "device", "clock", "cache", "mode", "ranks", "process_pairs", "stop_reason"),
    *("peak_memory_bytes", "gpus", "commit", "seconds", "reason"),
)
"""Times and speedups have 95 % intervals, from `low` to `high`. A cell is empty where nothing was measured."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(rows: Iterable[PairResult]) -> str:
    """The table: a header, then the sides of each timing; a row that has no timing is one line, with its reason."""
    written = io.StringIO()
    writer = csv.DictWriter(written, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        for line in _lines(row):
            writer.writerow({name: _cell(value) for name, value in line.items()})
    return written.getvalue()


def _lines(row: PairResult) -> Iterator[dict[str, object]]:
    origin = {"gpus": "; ".join(row.origin.gpus), "commit": row.origin.commit} if row.origin else {}
    whole = {"target": row.target, "status": str(row.status), "seconds": row.seconds, "reason": row.reason} | origin
    if not row.timings:
        yield whole
    for shape, timing in row.timings.items():
        for side in timing.time_ns:
            result = row.sides[side]
            verdict = {"verdict": str(row.verdicts[shape].kind)} if shape in row.verdicts and side in (OPTIMIZED, BASELINE) else {}
            of_side = {"shape": shape, "side": side, "file": result.file, "peak_memory_bytes": result.peak_memory_bytes}
            yield whole | verdict | of_side | _figures(timing, side)


def _figures(timing: PairTiming, side: str) -> dict[str, object]:
    how = {name: getattr(timing, name) for name in ("device", "clock", "cache", "mode", "ranks", "goal")}
    found = how | {"process_pairs": len(timing.units), "stop_reason": str(timing.stop_reason), "unit": timing.unit}
    found |= _interval("time", timing.time_ns.get(side), "_ns") | _interval("speedup", timing.speedups.get(side))
    if timing.figures:
        found |= _interval("figure", timing.figures.get(side)) | _interval("gain", timing.gains.get(side))
    share: Share | None = timing.shares.get(side)
    return found | ({"ceiling": share.key, "share_of_ceiling": share.share} if share else {})


def _interval(name: str, interval: Interval | None, unit: str = "") -> dict[str, object]:
    if interval is None:
        return {}
    return {f"{name}{unit}": interval.estimate, f"{name}_low{unit}": interval.low, f"{name}_high{unit}": interval.high}


def _cell(value: object) -> object:
    """A text on one line that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return "" if value is None else value
    line = " ".join(value.split())
    return f"'{line}" if value.startswith(_FORMULA) else line
