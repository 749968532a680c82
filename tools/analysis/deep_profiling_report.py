"""What the profiles of sides say against each other, in Markdown: counters a side, and for each comparison those that moved most.

Compared are the sides of each row with its baseline, and what a further folder holds with the first folder's row of the same target, or
with its only one; ncu's tables likewise, where the NVTX ranges that the harness sets tell the sides in them apart.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.profile import ncu
from common.python.profile.explain import reasons
from common.python.profile.ncu import ranked, stall_text, value_text
from common.python.profile.steps import gap_share
from common.python.report.run_folder import METRICS_FILE, RUN_FILE, folder_of, load
from common.python.results import BASELINE, PairResult, SideMetrics, SideProfile, StepTrace
from common.python.storage import read_document, write_whole
from common.python.wording import time_text

_MOST = 12
_RANGE = re.compile(r"<default domain>:(?P<target>[^:\s]+:[^:/\s]+)/(?P<side>\w+):")


@dataclass(frozen=True)
class Subject:
    """One side of a row, or of a table of ncu's: its counters over a step, what else is known of the step, and why it is faster."""

    name: str
    side: str
    kernels: int
    counters: Mapping[str, float]
    step: StepTrace | None = None
    share: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Group:
    """The sides of one target in one argument; a table that names no target has one side, and neither a name."""

    target: str
    subjects: tuple[Subject, ...]

    def like(self, subject: Subject, alone: bool) -> Subject | None:
        """The side that `subject` is held against: of its name, or the only one if `subject` is `alone` too."""
        same = next((each for each in self.subjects if each.side == subject.side), None)
        return self.subjects[0] if same is None and alone and len(self.subjects) == 1 else same


def groups_in(path: Path) -> list[Group]:
    """What was profiled in a run's folder, in a target's, or in a side's. Raises BenchmarkError."""
    folder = folder_of(path)
    if (folder / RUN_FILE).exists():
        return [group_of(row) for row in load(folder)[1]]
    try:
        alone = read_document(folder / METRICS_FILE, SideMetrics)
    except BenchmarkError:
        return [group_of(read_document(folder / METRICS_FILE, PairResult))]
    return [Group(alone.target, (_subject(alone.target, alone.side, alone.result.profile),) if alone.result.profile else ())]


def group_of(row: PairResult) -> Group:
    """The sides of a row that were profiled."""
    shares = {side: f"{100 * share.share:.1f} % of {share.key}" for timing in row.timings.values() for side, share in timing.shares.items()}
    why = {reason.side: f"{reason.title}: {reason.words}." for reason in reasons(row)}
    profiles = {side: result.profile for side, result in row.sides.items() if result.profile}
    return Group(
        row.target,
        tuple(
            replace(_subject(row.target, side, profile), share=shares.get(side, ""), reason=why.get(side, ""))
            for side, profile in profiles.items()
        ),
    )


def _subject(target: str, side: str, profile: SideProfile) -> Subject:
    return Subject(f"{target} {side}", side, len(profile.kernels), profile.counters, profile.step)


def groups_of_table(path: Path) -> list[Group]:
    """The sides in a table that ncu printed; one, of the file's name, where no range of the harness is in it. Raises BenchmarkError."""
    try:
        launches = ncu.read_file(path)
    except ncu.UnreadableTable as error:
        raise BenchmarkError(str(error)) from error
    found: dict[str, dict[str, list[ncu.Profiled]]] = {}
    for launch in launches:
        named = _RANGE.search(launch.ranges)
        target, side = (named["target"], named["side"]) if named else ("", "")
        found.setdefault(target, {}).setdefault(side, []).append(launch)
    return [
        Group(target, tuple(_counted_in(path, f"{target} {side}".strip(), side, each) for side, each in sides.items()))
        for target, sides in found.items()
    ]


def _counted_in(path: Path, name: str, side: str, launches: Sequence[ncu.Profiled]) -> Subject:
    counters = ncu.telling(ncu.together(launches))
    return Subject(name or path.stem, side, len(ncu.by_kernel(launches)), counters)


def told_apart(arguments: Sequence[tuple[Path, Sequence[Group]]]) -> list[list[Group]]:
    """The groups of each argument that have something in them; a name that two of them share gets the argument before it."""
    names = Counter(subject.name for _, groups in arguments for group in groups for subject in group.subjects)
    return [
        [
            replace(
                group,
                subjects=tuple(
                    replace(subject, name=f"{path}: {subject.name}") if names[subject.name] > 1 else subject for subject in group.subjects
                ),
            )
            for group in groups
            if group.subjects
        ]
        for path, groups in arguments
    ]


def pairs_of(arguments: Sequence[Sequence[Group]]) -> Iterator[tuple[Subject, Subject]]:
    """What is compared with what: the first of two is what the other is told against."""
    for number, groups in enumerate(arguments):
        for group in groups:
            baseline = next((subject for subject in group.subjects if subject.side == BASELINE), None)
            yield from ((baseline, subject) for subject in group.subjects if baseline and subject is not baseline)
            if number and (other := _same_target(group, arguments[0])):
                for subject in group.subjects:
                    if first := other.like(subject, len(group.subjects) == 1):
                        yield replace(first, reason=""), replace(subject, reason="")  # which is of another comparison


def _same_target(group: Group, groups: Sequence[Group]) -> Group | None:
    only = groups[0] if len(groups) == 1 else None
    return next((each for each in groups if each.target == group.target), only)


def markdown(folders: Sequence[Sequence[Group]], tables: Sequence[Sequence[Group]]) -> str:
    """The report."""
    subjects = [subject for groups in (*folders, *tables) for group in groups for subject in group.subjects]
    lines = [
        "# Profiles",
        "",
        *_table(("side", "kernels", *ncu.HEADLINES, "stalled most by", "share of ceiling"), map(_counted, subjects)),
    ]
    if traced := [(subject.name, subject.step) for subject in subjects if subject.step]:
        heads = ("side", "traced by", "launches", "kernels", "host", "on the GPU", "gaps", "copies under kernels")
        lines += ["", "## A step in time", "", *_table(heads, (_traced(name, step) for name, step in traced))]
    for one, other in (*pairs_of(folders), *pairs_of(tables)):
        found = ranked(other.side, one.counters, other.counters)[:_MOST]
        values = [
            (each.counter, value_text(each.counter, each.baseline), value_text(each.counter, each.value), each.ratio_text) for each in found
        ]
        lines += ["", f"## {one.name} → {other.name}", "", *((other.reason, "") if other.reason else ())]
        lines += _table(("counter", "first", "second", "ratio"), values) or [_nothing_moved(one, other)]
    return "\n".join(lines) + "\n"


def _nothing_moved(one: Subject, other: Subject) -> str:
    uncounted = [subject.name for subject in (one, other) if not subject.counters]
    return f"Nothing was counted in {' and '.join(uncounted)}." if uncounted else "No counter moved."


def _counted(subject: Subject) -> tuple[str, ...]:
    values = (value_text(name, subject.counters[name]) if name in subject.counters else "" for name in ncu.HEADLINES.values())
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
    parser = Arguments(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="of runs, of targets in them, or of their sides")
    parser.add_argument("--ncu-csv", action="append", type=Path, default=[], help="what `ncu --csv` printed; repeatable")
    parser.add_argument("--print-markdown", action="store_true", help="print the report and write nothing")
    chosen = parser.parse_args(arguments)
    try:
        folders = told_apart([(folder, groups_in(folder)) for folder in chosen.folders])
        tables = told_apart([(path, groups_of_table(path)) for path in chosen.ncu_csv])
        if not any((*folders, *tables)):
            raise BenchmarkError("found nothing that was profiled; expected folders of a run with --profile, or --ncu-csv FILE")
        text = markdown(folders, tables)
        if not chosen.print_markdown:
            place = folder_of(chosen.folders[0]) if chosen.folders else chosen.ncu_csv[0].parent
            write_whole(place / "profile_report.md", text)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print(text if chosen.print_markdown else place / "profile_report.md", end="" if chosen.print_markdown else "\n")
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    exit_with(main)
