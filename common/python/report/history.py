"""A row over time: its speedup in every run of a folder that asked the same question, and what lies between two runs where it moved."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from common.python.errors import BenchmarkError, Status
from common.python.gate.comparison import other_conditions
from common.python.gate.noise_floor import class_of_units
from common.python.gate.statistics import Difference, Mean, gated_logs
from common.python.machine.ceilings import ceilings_of
from common.python.pairs.discovery import canonical
from common.python.pairs.sources import git_in
from common.python.project import PROJECT_ROOT
from common.python.report.rows import changed_sources, checkout_text, commits_text, few, shown_ratios
from common.python.report.run_folder import RUN_FILE, load, typed
from common.python.results import OPTIMIZED, Interval, PairResult, PairTiming, Run, VerdictKind
from common.python.wording import at_shape, percent_text, significant, speedup_text

Cause = Literal["code", "environment", "machine", "clock", "noise", "unknown"]
_CLOCK_PERCENT = 1.0
_CEILING_PERCENT = 2.0
_PACKAGES = ("torch", "triton")
_HARNESS = "common/python"
_ASKING = ("against", "kwargs", "cold_start", "sustained", "ranks")  # what a speedup is of goes with these settings


@dataclass(frozen=True)
class Point:
    """One timing of a row: where it comes from, and its speedup."""

    target: str
    shape: str
    run: Run
    row: PairResult
    timing: PairTiming
    folder: Path

    @property
    def name(self) -> str:
        """The row and its named shape, and the flags by which its run asked something else of it: `ch07:copy --kwargs n=64`."""
        chosen = {name: self.run.settings[name] for name in _ASKING if self.run.settings.get(name)}
        flags = [typed(name, dict(sorted(value.items())) if isinstance(value, dict) else value) for name, value in chosen.items()]
        return " ".join([f"{self.target}{at_shape(self.shape)}", *flags])

    @property
    def root(self) -> str:
        """The folder that holds the pairs; "" of the harness's own project, which lies elsewhere on each machine."""
        project = self.environment.get("project")
        return "" if project and project == self.environment.get("root", project) else str(self.run.root)

    @property
    def speedup(self) -> Interval | None:
        """That of the optimized side, or what it gains at another goal; None of a half."""
        return shown_ratios(self.timing).get(OPTIMIZED)

    @property
    def environment(self) -> dict[str, Any]:
        """The machine, as the run has described it."""
        return self.run.environment

    @property
    def commit(self) -> str:
        """Of the folder that holds the pairs; "" outside of a checkout, or in one without a commit."""
        source = self.environment.get("root", self.environment.get("project"))
        return checkout_text(source) if source else ""

    @property
    def gpus(self) -> list[dict[str, Any]]:
        """Those of the machine, where the row was timed on one."""
        return list(self.environment.get("gpus", ())) if self.timing.device == "cuda" else []

    @property
    def machine(self) -> str:
        """The GPU by its name and the first digits of its uuid, or the CPU."""
        gpus = [f"{gpu['name']} {str(gpu.get('uuid', ''))[:12]}".rstrip() for gpu in self.gpus]
        return ", ".join(gpus) or str(self.environment.get("cpu", "a CPU"))

    @property
    def driver(self) -> str:
        """Its version; "" on a CPU."""
        return ", ".join(sorted({str(gpu["driver"]) for gpu in self.gpus}))


@dataclass(frozen=True)
class Change:
    """How a point differs from the one before it: by how much, the likeliest cause, and the evidence for each that there is."""

    percent: Interval
    is_told: bool
    cause: Cause
    evidence: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """One sentence: by how much the figure changed, and the reason, if one is known."""
        moved = f"speedup {percent_text(self.percent)}"
        told = "; ".join(each.removeprefix(f"{self.cause}: ") for each in self.evidence)
        return f"{moved}: {self.cause}" + (f" ({told})" if told else "")


@dataclass(frozen=True)
class Series:
    """All points of one row at one named shape, in one root and under one question, the oldest first, and how each differs from the one
    before; where that is None, `apart` says why the two are not compared.
    """

    name: str
    points: tuple[Point, ...]
    changes: tuple[Change | None, ...]
    apart: tuple[str, ...]


def history(folder: Path, target: str | None, root: Path) -> tuple[list[Series], list[str]]:
    """The series of `target`, or of every row, in the runs below `folder`; and a sentence for each run that cannot be read.

    Raises BenchmarkError if there is no run, or none that has timed the target.
    """
    points, problems = [], []
    for path in _runs_in(folder):
        try:
            run, rows = load(path)
            ceilings_of(run)  # read below, where a point moved
        except BenchmarkError as error:
            problems.append(str(error))
            continue
        points += list(_points(run, rows, path))
    if not points:
        unread = f" ({problems[0]}{f' (and {len(problems) - 1} more)' if len(problems) > 1 else ''})" if problems else ""
        raise BenchmarkError(f"{folder}: found no run with a timed row{unread}; expected a folder of runs, as artifacts/ is")
    wanted = [point for point in points if target is None or _is_called(point, canonical(target))]
    if not wanted:
        raise BenchmarkError(f"target {target!r}: found no time of it in {folder}; expected one of {_few(points)}")
    by_name: dict[str, dict[str, list[Point]]] = {}
    for point in sorted(wanted, key=lambda each: each.run.started):
        by_name.setdefault(point.name, {}).setdefault(point.root, []).append(point)
    return [
        _series(f"{name} of {place or 'the project'}" if len(places) > 1 else name, each, root)
        for name, places in sorted(by_name.items())
        for place, each in sorted(places.items())
    ], problems


def _runs_in(folder: Path) -> list[Path]:
    """The folders of runs in `folder`, which may be one itself. Raises BenchmarkError if it cannot be read."""
    try:
        return sorted({each.parent for pattern in ("", "*/", "*/*/") for each in folder.glob(f"{pattern}{RUN_FILE}")})
    except OSError as error:
        raise BenchmarkError(f"--runs {folder}: {error.strerror}; expected a folder of runs, as artifacts/ is") from error


def _points(run: Run, rows: Sequence[PairResult], path: Path) -> Iterator[Point]:
    for row in rows:
        for shape, timing in row.timings.items():
            if row.status is Status.PASSED and shown_ratios(timing).get(OPTIMIZED):
                yield Point(row.target, shape, run, row, timing, path)


def _is_called(point: Point, target: str) -> bool:
    found = canonical(point.target)
    return found == target if ":" in target else found.startswith(f"{target}:")


def _few(points: Sequence[Point]) -> str:
    names = sorted({point.target for point in points})
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _series(name: str, points: Sequence[Point], root: Path) -> Series:
    between = [change_between(before, after, root) for before, after in pairwise(points)]
    apart = [
        "" if change else f"not compared: {other_conditions(before.timing, after.timing) or 'too few process pairs'}"
        for change, (before, after) in zip(between, pairwise(points), strict=True)
    ]
    return Series(name, tuple(points), (None, *between), ("", *apart))


def change_between(before: Point, after: Point, root: Path) -> Change | None:
    """How `after` differs from `before`; None where the two were not timed alike, or have no ratio in every unit."""
    logs = [gated_logs(each.timing.units, each.timing.goal) for each in (before, after)]
    if other_conditions(before.timing, after.timing) or min(map(len, logs)) < 2:
        return None
    step = class_of_units(after.timing.clock, after.timing.units).value
    band = max(0.5, *(each.run.noise_percent.get(step, 0.0) for each in (before, after)))
    found = Difference.between(Mean.of(logs[1]), Mean.of(logs[0])).change(band)
    if found.kind in (VerdictKind.SAME, VerdictKind.INCONCLUSIVE):
        return Change(found.percent, is_told=False, cause="noise", evidence=(f"within {band:g} %, or not told from it",))
    causes = list(_causes(before, after, root))
    evidence = tuple(f"{cause}: {told}" for cause, told in causes)
    cause: Cause = causes[0][0] if causes else "unknown"
    return Change(found.percent, is_told=True, cause=cause, evidence=evidence or ("nothing recorded differs",))


def _causes(before: Point, after: Point, root: Path) -> Iterator[tuple[Cause, str]]:
    """What differs between two points that may be why, the likeliest first."""
    yield from (("code", told) for told in _code(before, after, root))
    yield from (("environment", told) for told in _environment(before, after))
    yield from (("machine", told) for told in _machine(before, after))
    clocks = [each.timing.telemetry.sm_clock_mhz for each in (before, after)]
    if clocks[0] and clocks[1] and _apart(clocks[0].median, clocks[1].median) > _CLOCK_PERCENT:
        yield "clock", f"SM clock {clocks[0].median:.0f} to {clocks[1].median:.0f} MHz"


def _code(before: Point, after: Point, root: Path) -> Iterator[str]:
    then, now = before.row.sources, after.row.sources
    if then and now:  # they know more than git does: what no commit has, and what the files import
        if names := changed_sources(then, now):
            yield f"the pair's files changed{_between_commits(before, after)}: {few(names)}"
    else:
        files = [before.row.workload_file, *(side.file for side in after.row.sides.values())]
        yield from _by_git(before, after, "root", files, root)
    yield from _by_git(before, after, "project", [_HARNESS], root)


def _between_commits(before: Point, after: Point) -> str:
    commits = [(each.environment.get("root") or {}).get("commit", "")[:10] for each in (before, after)]
    return f" from {commits[0]} to {commits[1]}" if all(commits) and commits[0] != commits[1] else ""


def _by_git(before: Point, after: Point, key: str, paths: Sequence[str], root: Path) -> Iterator[str]:
    then, now = before.environment.get(key), after.environment.get(key)
    if not then or not now:
        return
    what = "the harness" if key == "project" else "the pair's files"
    is_one = after.environment.get("root", now) == after.environment.get("project", now)
    if then["commit"] != now["commit"]:
        folder = root if is_one or key == "root" else PROJECT_ROOT
        listed = git_in("history", folder, "diff", "--name-only", then["commit"], now["commit"], "--", *paths)
        names = listed.stdout.split()
        if listed.returncode:
            yield f"{what}: commit {then['commit'][:10]} to {now['commit'][:10]}, of which this checkout cannot tell the difference"
        elif names:
            yield f"{what} changed from {then['commit'][:10]} to {now['commit'][:10]}: {', '.join(names[:3])}"
    elif then["dirty"] or now["dirty"]:
        yield f"{what} may differ: there were changes that no commit has"


def _environment(before: Point, after: Point) -> Iterator[str]:
    versions = {"driver": (before.driver, after.driver)}
    versions |= {key: (before.environment.get(key, ""), after.environment.get(key, "")) for key in ("nvcc", "cuda_driver")}
    packages = [each.environment.get("packages", {}) for each in (before, after)]
    versions |= {name: (packages[0].get(name, ""), packages[1].get(name, "")) for name in _PACKAGES}
    for name, (then, now) in versions.items():
        if then and now and then != now:
            yield f"{name} {then} to {now}"


def _machine(before: Point, after: Point) -> Iterator[str]:
    if before.machine != after.machine:
        yield f"{before.machine} to {after.machine}"
    kept = [_ceilings(each) for each in (before, after)]
    for name in sorted(kept[0].keys() & kept[1].keys()):
        if _apart(kept[0][name], kept[1][name]) > _CEILING_PERCENT:
            yield f"ceiling {name} {significant(100 * (kept[1][name] / kept[0][name] - 1))} %"


def _ceilings(point: Point) -> dict[str, float]:
    """The ceilings that the row's work is of."""
    kept = ceilings_of(point.run).get(point.timing.device)
    of_work = [each for each in kept.ceilings if each.name in point.timing.work] if kept else []
    return {f"{each.name} {each.mode}": each.value.estimate for each in of_work}


def _apart(a: float, b: float) -> float:
    return 100 * abs(b / a - 1)


def as_json(series: Sequence[Series]) -> list[dict[str, Any]]:
    """The series as plain data."""
    return [
        {
            "name": each.name,
            "points": [
                {
                    "run": str(point.folder),
                    "started": point.run.started,
                    "commit": point.commit,
                    "driver": point.driver,
                    "machine": point.machine,
                    "speedup": point.speedup.model_dump() if point.speedup else None,
                    "time_ns": {side: time.model_dump() for side, time in point.timing.time_ns.items()},
                    "change": {**asdict(change), "percent": change.percent.model_dump()} if change else None,
                    "apart": apart,
                }
                for point, change, apart in zip(each.points, each.changes, each.apart, strict=True)
            ],
        }
        for each in series
    ]


def lines_of_series(series: Series) -> list[tuple[str, ...]]:
    """A line a point: when, its speedup, commit, driver, machine, and how it differs from the line before."""
    return [
        (
            point.run.started[:16].replace("T", " "),
            speedup_text(point.speedup) if point.speedup else "",
            commits_text(point.environment).removeprefix("commit "),
            point.driver,
            point.machine,
            change.sentence if change else apart,
        )
        for point, change, apart in zip(series.points, series.changes, series.apart, strict=True)
    ]


HEADS = ("started", "speedup [95 %]", "commit", "driver", "machine", "since the line before")
_WIDTH, _HEIGHT, _EDGE = 640, 140, 12


def page(series: Sequence[Series]) -> str:
    """An HTML page without external files: a chart and a table for each series."""
    parts = [f"<h2>{html.escape(each.name)}</h2>{_chart(each)}{_table(each)}" for each in series]
    style = "body{font:15px system-ui;max-width:1000px;margin:2em auto;padding:0 1em}td,th{text-align:left;padding:2px 10px 2px 0}"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>History</title><style>{style}</style>'
    return f"{head}<h1>Speedups over time</h1>{''.join(parts)}</html>\n"


def _chart(series: Series) -> str:
    """Each interval as a whisker, in the order of time; the scale is that of the series, and its ends are written beside it."""
    spans = [point.speedup for point in series.points if point.speedup]
    low, high = min(span.low for span in spans), max(span.high for span in spans)
    scale = (_HEIGHT - 2 * _EDGE) / ((high - low) or 1.0)

    def at(value: float) -> float:
        return _HEIGHT - _EDGE - (value - low) * scale

    marks = []
    for position, span in enumerate(spans):
        x = 70 + (_WIDTH - 90) * (position + 0.5) / len(spans)
        marks.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{at(span.low):.1f}" y2="{at(span.high):.1f}" stroke="currentColor"/>')
        marks.append(f'<circle cx="{x:.1f}" cy="{at(span.estimate):.1f}" r="3.5"><title>{speedup_text(span)}</title></circle>')
    ends = f'<text x="4" y="{_EDGE + 4}">{high:.4g}x</text><text x="4" y="{_HEIGHT - _EDGE + 4}">{low:.4g}x</text>'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" role="img" aria-label="speedups">{ends}{"".join(marks)}</svg>'


def _table(series: Series) -> str:
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in lines_of_series(series))
    return f"<table><tr>{heads}</tr>{rows}</table>"
