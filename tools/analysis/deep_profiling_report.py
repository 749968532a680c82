"""What the profiles of sides say against each other, in Markdown: counters a side, and for each comparison those that moved most.

Compared are the sides of each row with its baseline, the sides of further rows with those of the first that have their names, and ncu's
tables with the first of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.python import ncu_tables
from common.python.artifacts import METRICS_FILE, RUN_FILE, load, read_document, write_whole
from common.python.counters import ranked, stall_text, value_text
from common.python.errors import BenchmarkError, ExitCode
from common.python.figures import time_text
from common.python.results import BASELINE, PairResult, StepTrace
from common.python.step_trace import gap_share

_MOST = 12


@dataclass(frozen=True)
class Subject:
    """One side of a row, or one table of ncu's: its counters over a step, and what else is known of the step."""

    name: str
    side: str
    kernels: int
    counters: Mapping[str, float]
    step: StepTrace | None = None
    share: str = ""


def subjects_of(row: PairResult) -> list[Subject]:
    """The sides of a row that were profiled."""
    shares = {side: f"{100 * share.share:.1f} % of {share.key}" for timing in row.timings.values() for side, share in timing.shares.items()}
    return [
        Subject(f"{row.target} {side}", side, len(profile.kernels), profile.counters, profile.step, shares.get(side, ""))
        for side, result in row.sides.items()
        if (profile := result.profile)
    ]


def subject_of(path: Path) -> Subject:
    """A table that ncu printed. Raises BenchmarkError."""
    try:
        launches = ncu_tables.read_file(path)
    except ncu_tables.UnreadableTable as error:
        raise BenchmarkError(str(error)) from error
    return Subject(path.stem, "", len(ncu_tables.by_kernel(launches)), ncu_tables.telling(ncu_tables.together(launches)))


def rows_in(folder: Path) -> tuple[PairResult, ...]:
    """The rows of a run's folder, or the row of a target's. Raises BenchmarkError."""
    if (folder / RUN_FILE).exists():
        return load(folder)[1]
    return (read_document(folder / METRICS_FILE, PairResult),)


def pairs_of(groups: Sequence[Sequence[Subject]], tables: Sequence[Subject]) -> Iterator[tuple[Subject, Subject]]:
    """What is compared with what: the first of two is what the other is told against."""
    for number, group in enumerate(groups):
        by_side = {subject.side: subject for subject in group}
        yield from ((by_side[BASELINE], subject) for subject in group if BASELINE in by_side and subject.side != BASELINE)
        first = {subject.side: subject for subject in groups[0]} if number else {}
        yield from ((first[side], subject) for side, subject in by_side.items() if side in first)
    yield from ((tables[0], table) for table in tables[1:])


def markdown(groups: Sequence[Sequence[Subject]], tables: Sequence[Subject]) -> str:
    """The report."""
    subjects = [*(subject for group in groups for subject in group), *tables]
    lines = [
        "# Profiles",
        "",
        *_table(("side", "kernels", *ncu_tables.HEADLINES, "stalled most by", "share of ceiling"), map(_counted, subjects)),
    ]
    if traced := [(subject.name, subject.step) for subject in subjects if subject.step]:
        heads = ("side", "traced by", "launches", "kernels", "host", "on the GPU", "gaps", "copies under kernels")
        lines += ["", "## A step in time", "", *_table(heads, (_traced(name, step) for name, step in traced))]
    for one, other in pairs_of(groups, tables):
        found = ranked(other.side, one.counters, other.counters)[:_MOST]
        values = [
            (each.counter, value_text(each.counter, each.baseline), value_text(each.counter, each.value), f"{each.ratio:.2f}x")
            for each in found
        ]
        lines += [
            "",
            f"## {one.name} → {other.name}",
            "",
            *(_table(("counter", "first", "second", "ratio"), values) or ["No counter moved."]),
        ]
    return "\n".join(lines) + "\n"


def _counted(subject: Subject) -> tuple[str, ...]:
    values = (value_text(name, subject.counters[name]) if name in subject.counters else "" for name in ncu_tables.HEADLINES.values())
    return (subject.name, str(subject.kernels), *values, stall_text(subject.counters), subject.share)


def _traced(name: str, step: StepTrace) -> tuple[str, ...]:
    overlap = "" if step.overlap_share is None else f"{100 * step.overlap_share:.0f} %"
    times = (time_text(step.host_ns), time_text(step.span_ns), f"{100 * gap_share(step):.0f} %", overlap)
    return (name, step.source, str(step.launches), str(step.kernels), *times)


def _table(heads: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> list[str]:
    body = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *body] if body else []


def main(arguments: list[str] | None = None) -> int:
    """Write the report beside the first thing that it is about, or print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="of runs, or of targets in them")
    parser.add_argument("--ncu-csv", action="append", type=Path, default=[], help="what `ncu --csv` printed; repeatable")
    parser.add_argument("--print-markdown", action="store_true", help="print the report and write nothing")
    chosen = parser.parse_args(arguments)
    try:
        groups = [subjects_of(row) for folder in chosen.folders for row in rows_in(folder)]
        tables = [subject_of(path) for path in chosen.ncu_csv]
        if not any(groups) and not tables:
            raise BenchmarkError("found nothing that was profiled; expected folders of a run with --profile, or --ncu-csv FILE")
        text = markdown([group for group in groups if group], tables)
        if not chosen.print_markdown:
            place = chosen.folders[0] if chosen.folders else chosen.ncu_csv[0].parent
            write_whole(place / "profile_report.md", text)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print(text if chosen.print_markdown else place / "profile_report.md", end="" if chosen.print_markdown else "\n")
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    sys.exit(main())
