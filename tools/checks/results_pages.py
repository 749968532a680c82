"""The page RESULTS.md of a folder: all that is known of its pairs, which the tables of its README are too short for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from common.python.gate.expectations import Expectation, is_of_several
from common.python.gate.statistics import geometric_interval
from common.python.pairs.claims import IN_CODE, INSTRUCTIONS, Claim, read_claims
from common.python.pairs.directives import read_directives
from common.python.pairs.goals import NEITHER, TIME
from common.python.results import BASELINE, OPTIMIZED
from common.python.wording import bytes_text, figure_interval_text, interval_text, speedup_text
from tools.campaign.sweeps import LoadSweep, TimeSweep
from tools.checks.load_pages import load_records, load_section
from tools.checks.measured_pairs import LIBRARY, README, MeasuredPair, of_library, place
from tools.checks.predicted_ratios import equations, equations_of, lines_in, outcomes, said_in_ladder, said_of
from tools.checks.served_tables import served_table
from tools.checks.short_tables import NOT_ACCEPTED, share_text
from tools.checks.sweep_pages import sweep_records, sweep_section
from tools.checks.written_tables import NOT_MEASURED, rows

NAME = "RESULTS.md"
COLUMNS = ("side", "time", "speedup", "of library", "share of ceiling", "peak memory")
OVER_STEP = "over the step before"
_COMMIT = 10

HEAD = f"""\
# Results: {{folder}}

Written by `tools/checks/pages.py` from the expectations files of this folder. The pairs are explained in [{README}]({README}).

- **time**: geometric mean of the median times of all process pairs, with its 95 % interval.
- **speedup**: the baseline's time divided by that of the side.
- **of library**: the library's time divided by that of the side; above 1x the side is faster than the library.
- **share of ceiling**: the time that the least possible work takes at the ceiling measured on the same machine, divided by the side's time.
  The ceiling is named: `fp32` is torch's FP32 product, `fp32_fma` are multiply-adds, which reach more.
- **peak memory**: the most that torch's allocator held during one step or trace, inputs included; of several ranks the sum.
  What cudaMalloc, NCCL, NVSHMEM or symmetric memory took beside it counts only in rows with the goal `memory`.
- **proves**: holds in the optimized side and not in the baseline. **has**: holds in the optimized side.
- **fewer**, **more**: compared with the baseline. **launches**: what the host starts in one step."""


def results_page(folder: Path, pairs: Iterable[MeasuredPair], root: Path) -> str:
    """The whole page of one folder. Raises BenchmarkError, naming the file, for a side that predicts nothing or claims what is no claim."""
    name, by_load, by_entry = folder.relative_to(root).as_posix(), load_records(folder), sweep_records(folder)
    pairs = list(pairs)
    sections = (_section(measured, root, by_load.get(measured.pair.name, {}), by_entry.get(measured.pair.name, ())) for measured in pairs)
    served = [text] if (text := served_table(pairs, by_load)) else []
    return "\n\n".join([HEAD.format(folder=name), *served, *sections]) + "\n"


def _section(measured: MeasuredPair, root: Path, by_load: Mapping[str, LoadSweep], by_entry: Iterable[TimeSweep]) -> str:
    name = measured.pair.name
    parts = [f"## {name}", "\n".join(_sides(measured, root)), *_timings(measured)]
    if not measured.shapes:
        parts.append(f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}.")
    parts += [load_section(name, key, sweep) for key, sweep in by_load.items()]
    parts += [sweep_section(measured, sweep) for sweep in by_entry]
    parts += outcomes(measured)
    parts += [f"{title}:\n\n" + "\n".join(lines) for title, lines in _lists(measured) if lines]
    return "\n\n".join(parts)


def _sides(measured: MeasuredPair, root: Path) -> Iterator[str]:
    """A line a side with its idea, and below it what it predicts: over the step before it in a ladder, else over the baseline."""
    said = said_in_ladder(measured, root) if measured.steps else None
    for side, path in measured.pair.sides.items():
        link = os.path.relpath(path, measured.pair.workload.parent)
        yield f"- [{side}]({link}): {read_directives(path).idea}"
        if side not in (BASELINE, LIBRARY):
            over = " over the step before" if said is not None and side != OPTIMIZED else ""
            yield from (f"  - predicted{over}: {text}" for text in _predicted(measured, side, said))


def _predicted(measured: MeasuredPair, side: str, ladder: Mapping[Path, str] | None) -> list[str]:
    """What is predicted of a side: of a ladder's step what names it; for the optimized side all that is left of the pair's equations."""
    path = measured.pair.sides[side]
    if text := said_of(path, ladder):
        return [text]
    if side != OPTIMIZED:
        return (ladder is not None and equations_of(measured, side)) or lines_in(path)
    of_steps = [line for _, step in measured.steps if step != OPTIMIZED for line in equations_of(measured, step)]
    return [line for line in equations(measured) if line not in of_steps]


def _timings(measured: MeasuredPair) -> Iterator[str]:
    for model, shape, expected in measured.timings():
        entries = ", ".join(f"{key} = {value}" for key, value in expected.shape.items())
        goal = "" if expected.goal == TIME else f" Goal `{expected.goal}`: {speedup_text(expected.ratio)} as good as the baseline."
        head = f"**{place(model, shape)}**: {entries}; clock `{expected.clock}`, caches {expected.cache}.{goal}"
        yield "\n\n".join([f"{head}\n\n{_table(measured, expected, list(measured.models[model].values()))}", *_metrics(expected)])
    kinds = {is_of_several(model) for model, known in measured.models.items() if known}  # a pair of ranks is none for one GPU
    for model, known in measured.models.items():
        if not known and is_of_several(model) in kinds:
            yield f"**{place(model, 'default')}**: {NOT_MEASURED}."


def _table(measured: MeasuredPair, expected: Expectation, shapes: Sequence[Expectation]) -> str:
    """`shapes`: what was measured on the same model, `expected` among it."""
    before = {after: first for first, after in measured.steps}
    has_figures = any(own.figure for own in expected.sides.values())
    body = []
    for side in measured.pair.sides:
        if side not in expected.sides:
            body.append([side, NOT_MEASURED, "", *([""] if before else []), "", "", "", *([""] if has_figures else [])])
            continue
        own = expected.sides[side]
        library = of_library(expected, side) if LIBRARY in measured.pair.sides else None
        body.append(
            [
                side,
                interval_text(own.time_ns),
                _speedup(expected, side),
                *([_over_step(expected, before[side], side) if side in before else ""] if before else []),
                speedup_text(library) if library else "",
                f"{share_text(own.share)} of `{own.share.key}`" if own.share else NOT_MEASURED,
                _peak(side, expected, shapes),
                *([figure_interval_text(own.figure, expected.unit) if own.figure else NOT_MEASURED] if has_figures else []),
            ]
        )
    head = [*COLUMNS, *([f"{expected.goal} (goal)"] if has_figures else [])]
    if before:
        head.insert(3, OVER_STEP)
    return rows(tuple(head), body)


def _peak(side: str, expected: Expectation, shapes: Sequence[Expectation]) -> str:
    """A side's peak memory. A run keeps one for all shapes that it times: it stands at the first of them."""
    own = expected.sides[side].peak_memory_bytes
    if own is None:
        return NOT_MEASURED
    same = [each for each in shapes if side in each.sides and each.sides[side].peak_memory_bytes == own]
    if len(same) == 1:
        return bytes_text(own)
    return f"{bytes_text(own)} (largest shape)" if expected is same[0] else ""


def _metrics(expected: Expectation) -> Iterator[str]:
    """A list of the workload's own figures, side by side, but for the goal, which the table has."""
    names = {name: metric for own in expected.metrics.values() for name, metric in own.items() if name != expected.goal}
    if not names:
        return
    lines = ["Figures of the workload itself, self-reported:\n"]
    for name, metric in names.items():
        values = [f"{side} {own[name].value:.5g}" for side, own in expected.metrics.items() if name in own]
        way = "neither way" if metric.better == NEITHER else metric.better
        lines.append(f"- `{name}`, {metric.unit}: {', '.join(values)}; {way} is better")
    yield "\n".join(lines)


def _speedup(expected: Expectation, side: str) -> str:
    """A side's speedup over the baseline: the accepted one, or that which its units come to."""
    if side == BASELINE:
        return ""
    if side == OPTIMIZED:
        return speedup_text(expected.speedup)
    own, baseline = expected.sides[side].logs_ns, expected.sides[BASELINE].logs_ns
    return speedup_text(geometric_interval([math.exp(first - log) for first, log in zip(baseline, own, strict=True)]))


def _over_step(expected: Expectation, before: str, side: str) -> str:
    """What a step gained over the one before it; where it was timed over another, that is not measured yet."""
    if rung := expected.rungs.get(side):
        return speedup_text(rung.ratio) if rung.over == before else NOT_MEASURED
    return NOT_ACCEPTED if expected.rungs else NOT_MEASURED


def _lists(measured: MeasuredPair) -> Iterator[tuple[str, list[str]]]:
    """Title and lines of each list below a section's tables."""
    yield "Claimed", list(_claims(measured))
    yield "Measured with", list(_provenances(measured))


def _claims(measured: MeasuredPair) -> Iterator[str]:
    """A line a claim of the optimized side: where it is seen, and of a counter what it was, or that nobody has read it."""
    claims = read_claims(measured.optimized, read_directives(measured.optimized))
    if not claims:
        yield "- none"
    for claim in claims:
        kind = claim.measure.kind
        where = "machine code" if kind in (INSTRUCTIONS, *IN_CODE) else "counters" if kind == "counter" else "launches"
        seen = ", ".join(_seen(claim, measured)) or ("not read yet" if kind == "counter" else "")
        yield f"- {'proves' if claim.separates else 'has'}, in {where}: `{claim.text}`" + (f"; {seen}" if seen else "")


def _seen(claim: Claim, measured: MeasuredPair) -> Iterator[str]:
    """What the claimed counter was, wherever the run that was accepted read it."""
    for model, shape, expected in measured.timings():
        values = [expected.sides[side].counters.get(name, math.nan) for name in claim.measure.names for side in (OPTIMIZED, BASELINE)]
        if claim.measure.kind == "counter" and not any(map(math.isnan, values)):
            own, baseline = values
            yield f"{place(model, shape)}: " + (f"{own / baseline:.3g} x baseline" if claim.relative and baseline else f"{own:.4g}")


def _provenances(measured: MeasuredPair) -> Iterator[str]:
    """A line for all timings that were made together: GPU, driver, torch, commit, date, and how many process pairs each has."""
    places: dict[str, list[str]] = {}
    for model, shape, expected in measured.timings():
        source, count = expected.provenance, len(expected.logs)
        commit = f"commit {source.commit[:_COMMIT] or 'unknown'}{' with changes' if source.dirty else ''}"
        torch = f"torch {source.torch or 'unknown'}"
        told = f"{source.gpu}, driver {source.driver}, {torch}, {commit}, {source.date[:10]}, {count} process pairs"
        places.setdefault(told, []).append(place(model, shape))
    for told, where in places.items():
        yield f"- {', '.join(where)}: {told}"
