"""Every figure of a run as one flat JSON list, for a plot or another tool: what was timed, what it cost, what profilers told."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.pairs.serving import unit_of
from common.python.profile.steps import gap_share
from common.python.report.rows import break_even_calls
from common.python.report.run_folder import load
from common.python.results import BASELINE, PairResult, PairTiming, PredictedTerm, SideProfile

Figure = dict[str, str | float]


def figures_of(row: PairResult) -> Iterator[Figure]:
    """Every number of a result row as a dict with target, side, name, value, unit and source; those of a timing also have the shape.

    A figure that cannot be divided among the sides has the side `all`: the energy of the window in which the sides alternate.
    """
    for shape, timing in row.timings.items():
        yield from (figure | {"shape": shape} for figure in _timed(row, timing))
    for terms in row.predictions.values():
        yield from (figure for term in terms for figure in _predicted(row, term))
    for side, metrics in row.metrics.items():
        for name, metric in metrics.items():
            yield _figure(row, side, name, metric.value, metric.unit, "self-reported" if metric.self_reported else "harness")
    yield from _changes(row, {side: {name: metric.value for name, metric in metrics.items()} for side, metrics in row.metrics.items()})
    for side, result in row.sides.items():
        if result.peak_memory_bytes is not None:
            yield _figure(row, side, "peak_memory", result.peak_memory_bytes, "bytes")
        if result.setup is not None:
            for name, seconds in result.setup.model_dump(exclude={"cached"}).items():
                yield _figure(row, side, f"setup_{name.removesuffix('_s')}", seconds, "s")
        if result.profile is not None:
            yield from _profiled(row, side, result.profile)


def _timed(row: PairResult, timing: PairTiming) -> Iterator[Figure]:
    for side, time in timing.time_ns.items():
        yield _figure(row, side, "time", time.estimate, "ns") | {"low": time.low, "high": time.high}
    for side, speedup in timing.speedups.items():
        yield _figure(row, side, "speedup", speedup.estimate, "x") | {"low": speedup.low, "high": speedup.high}
        if (calls := break_even_calls(row, timing, side)) is not None:
            yield _figure(row, side, "break_even", calls, "calls")
    for side, share in timing.shares.items():
        yield _figure(row, side, "share_of_ceiling", share.share, "ratio") | {"ceiling": share.key}
        if share.at_held_clock is not None:
            yield _figure(row, side, "share_of_ceiling_at_held_clock", share.at_held_clock, "ratio") | {"ceiling": share.key}
    yield from _served(row, timing)
    for side, gain in timing.gains.items():
        yield _figure(row, side, f"gain in {timing.goal}", gain.estimate, "x") | {"low": gain.low, "high": gain.high}
    for side, figure in timing.figures.items():
        yield _figure(row, side, timing.goal, figure.estimate, timing.unit) | {"low": figure.low, "high": figure.high}
    for side, joules in timing.joules.items():
        yield _figure(row, side, "joules_per_step", joules.estimate, "J") | {"low": joules.low, "high": joules.high}
    if energy := timing.telemetry.energy:
        yield _figure(row, "all", "energy", energy.joules, "J") | {"seconds": energy.seconds}


def _served(row: PairResult, timing: PairTiming) -> Iterator[Figure]:
    """What requests saw: every figure of every side, what changed from the baseline to it, and the load that was offered."""
    if timing.serving is None:
        return
    for side, figures in timing.serving.figures.items():
        for name, found in figures.items():
            yield _figure(row, side, name, found.estimate, unit_of(name)) | {"low": found.low, "high": found.high}
    by_side = {side: {name: found.estimate for name, found in figures.items()} for side, figures in timing.serving.figures.items()}
    yield from _changes(row, by_side)
    for name, rate in (("offered", timing.serving.offered_per_s), ("saturation", timing.serving.saturation_per_s)):
        if rate is not None:
            yield _figure(row, "all", name, rate, "requests/s")


def _changes(row: PairResult, figures: Mapping[str, Mapping[str, float]]) -> Iterator[Figure]:
    """What each figure changed by from the baseline to another side that has it too, in percent."""
    before = figures.get(BASELINE, {})
    for side, after in figures.items():
        for name in [name for name in after if name in before and side != BASELINE]:
            if before[name]:
                yield _figure(row, side, f"change of {name}", 100 * (after[name] / before[name] - 1), "percent")


def _predicted(row: PairResult, term: PredictedTerm) -> Iterator[Figure]:
    """What was predicted, and measured over predicted, of one term; its side is `all`, as a term may be of two."""
    source = "guess" if term.is_guess else "prediction"
    for name, value, unit in (("predicted", term.predicted, term.unit), ("measured_over_predicted", term.ratio, "ratio")):
        if value is not None:
            yield _figure(row, "all", f"{name} {term.subject}", value, unit, source) | {"shape": term.shape, "missed": term.missed}


def _profiled(row: PairResult, side: str, profile: SideProfile) -> Iterator[Figure]:
    if step := profile.step:
        told = {"launches": (step.launches, "count"), "host": (step.host_ns, "ns"), "gap_share": (gap_share(step), "ratio")}
        if step.overlap_share is not None:
            told["overlap_share"] = (step.overlap_share, "ratio")
        yield from (_figure(row, side, name, value, unit, step.source) for name, (value, unit) in told.items())
    yield from (_figure(row, side, name, value, "", "ncu") for name, value in profile.counters.items())


def _figure(row: PairResult, side: str, name: str, value: float, unit: str, source: str = "harness") -> Figure:
    return {"target": row.target, "side": side, "name": name, "value": value, "unit": unit, "source": source}


def main(arguments: list[str] | None = None) -> int:
    """Print the figures of runs as JSON."""
    parser = Arguments(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="a run's folder, or its run.json")
    try:
        rows = [row for run in parser.parse_args(arguments).runs for row in load(run)[1]]
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print(json.dumps([figure for row in rows for figure in figures_of(row)], indent=2))
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    exit_with(main)
