"""What the requests of serving rows saw, as lists that a plot takes: requests by their stamps, loads by their figures, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.measure.serving_figures import tpot_ms, ttft_ms
from common.python.metrics_extractor import Figure, figures_of
from common.python.report.run_folder import METRICS_FILE, RUN_FILE, load
from common.python.results import Interval, PairResult, ServedRequest
from common.python.storage import ARTIFACTS


@dataclass(frozen=True)
class Seen:
    """What one request of a timed trace saw. `in_flight`: requests that were due and not complete when it was, itself among them.

    `tpot_ms` is None of an answer of one token.
    """

    target: str
    side: str
    load: str
    in_flight: int
    prompt_tokens: int
    output_tokens: int
    ttft_ms: float
    tpot_ms: float | None


@dataclass(frozen=True)
class Load:
    """A side at one offered load, over process pairs with 95 % intervals; `offered_per_s` is None where all requests come at once."""

    target: str
    side: str
    offered_per_s: float | None
    saturation_per_s: float | None
    output_tokens_per_s: Interval
    goodput: Interval


def newest_run(folder: Path = ARTIFACTS) -> Path:
    """The newest run in `folder` that served requests. Raises BenchmarkError where there is none."""
    newest_first = sorted(folder.glob(f"*/{RUN_FILE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest_first:
        if (path.parent / METRICS_FILE).is_file() and any(served(load(path)[1])):
            return path.parent
    raise BenchmarkError(f"found no run of a serving pair in {folder}; expected one, as of `run -t ch15`")


def serving_rows(runs: Sequence[Path | str]) -> tuple[PairResult, ...]:
    """The rows of `runs` that served requests. Raises BenchmarkError where none did."""
    rows = tuple(row for run in map(Path, runs) for row in served(load(run)[1]))
    if not rows:
        raise BenchmarkError(f"{', '.join(map(str, runs))}: found no timed serving row; expected one, as of `run -t ch15`")
    return rows


def served(rows: Sequence[PairResult]) -> Iterator[PairResult]:
    """Those of `rows` with figures of served requests."""
    return (row for row in rows if any(timing.serving for timing in row.timings.values()))


def requests_of(rows: Sequence[PairResult]) -> list[Seen]:
    """Every request of every timed trace."""
    return [
        Seen(
            target=row.target,
            side=side,
            load=shape,
            in_flight=in_flight(trace, request.due_us),
            prompt_tokens=request.prompt_tokens,
            output_tokens=len(request.tokens_us),
            ttft_ms=ttft_ms(request),
            tpot_ms=tpot_ms(request) if len(request.tokens_us) > 1 else None,
        )
        for row in rows
        for shape, side, trace in _traces(row)
        for request in trace
    ]


def _traces(row: PairResult) -> Iterator[tuple[str, str, Sequence[ServedRequest]]]:
    for shape, timing in row.timings.items():
        for unit in timing.units:
            yield from ((shape, side, block.requests) for side, blocks in unit.blocks.items() for block in blocks if block.requests)


def in_flight(trace: Sequence[ServedRequest], at_us: int) -> int:
    """How many requests of a trace are due and not complete at a time."""
    return sum(request.due_us <= at_us < request.tokens_us[-1] for request in trace)


def loads_of(rows: Sequence[PairResult]) -> list[Load]:
    """Every side at every load, by the figures that metrics_extractor.py prints; in order of what was offered."""
    loads = []
    for row in rows:
        figures = {(figure.get("shape"), figure["side"], figure["name"]): figure for figure in figures_of(row)}
        for shape, timing in row.timings.items():
            for side in timing.serving.figures if timing.serving else ():
                offered, saturation = (figures.get((shape, "all", name)) for name in ("offered", "saturation"))
                loads.append(
                    Load(
                        target=row.target,
                        side=side,
                        offered_per_s=_value(offered),
                        saturation_per_s=_value(saturation),
                        output_tokens_per_s=_interval(figures[shape, side, "output_tokens_per_s"]),
                        goodput=_interval(figures[shape, side, "goodput"]),
                    )
                )
    return sorted(loads, key=lambda each: each.offered_per_s or 0.0)


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else float(figure["value"])


def _interval(figure: Figure) -> Interval:
    return Interval(estimate=float(figure["value"]), low=float(figure["low"]), high=float(figure["high"]))


def context_held(rows: Sequence[PairResult]) -> dict[tuple[str, str], list[tuple[float, int]]]:
    """By target and side: tokens of context that requests in flight need, over the first timed trace at the row's last load.

    Pairs of ms from the trace's begin and tokens from there on: a request's prompt from when it is due, a token more at each stamp, and
    none when it is complete. What a cache that holds just this would hold; a side may hold more.
    """
    held: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for row in rows:
        last = list(row.timings)[-1]
        first_traces: dict[str, Sequence[ServedRequest]] = {}
        for shape, side, trace in _traces(row):
            if shape == last:
                first_traces.setdefault(side, trace)
        held |= {(row.target, side): _held(trace) for side, trace in first_traces.items()}
    return held


def _held(trace: Sequence[ServedRequest]) -> list[tuple[float, int]]:
    changes: dict[int, int] = {}
    for request in trace:
        steps = [(request.due_us, request.prompt_tokens), *((stamp, 1) for stamp in request.tokens_us)]
        for at_us, tokens in [*steps, (request.tokens_us[-1], -sum(tokens for _, tokens in steps))]:
            changes[at_us] = changes.get(at_us, 0) + tokens
    times = sorted(changes)
    return [(at_us / 1e3, tokens) for at_us, tokens in zip(times, accumulate(changes[at_us] for at_us in times), strict=True)]


def peak_memory(rows: Sequence[PairResult]) -> Mapping[tuple[str, str], float]:
    """Peak device memory in bytes by target and side; none of rows on a CPU."""
    figures = (figure for row in rows for figure in figures_of(row) if figure["name"] == "peak_memory")
    return {(str(figure["target"]), str(figure["side"])): float(figure["value"]) for figure in figures}
