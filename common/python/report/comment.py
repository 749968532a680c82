"""A run as one comment on a pull request: what moved, by how much, with the interval; what was not gated; what did not move is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from common.python.errors import ExitCode, Status
from common.python.report.rows import against_text, counts_text, few, machine_text, shown_ratios, unreached
from common.python.report.tables import markdown_cell
from common.python.report.ungated import exit_reason, ungated
from common.python.results import OPTIMIZED, PairResult, Run, Verdict, VerdictKind
from common.python.wording import at_shape, one_line, percent_text, speedup_text

MARK = "<!-- benchmark_cli: comment -->"
"""What a workflow finds its own comment by."""

MOST_ROWS = 30
_MOST_CHARACTERS = 300  # of a reason: GitHub takes 65 536 in all
_MOVED = (VerdictKind.REGRESSED, VerdictKind.INCONCLUSIVE, VerdictKind.IMPROVED)  # in the order of a reader's interest
_HEADLINES: dict[int, str] = {
    ExitCode.REGRESSION: "slower than expected",
    ExitCode.INCONCLUSIVE: "not decided",
    ExitCode.WRONG: "wrong, dishonest or unproven",
    ExitCode.NOTHING_MEASURED: "nothing was gated",
    ExitCode.UNFIT: "the machine was not fit to measure on",
    ExitCode.BROKEN: "a build, launch or process failed",
    ExitCode.FULL_DISK: "the disk was full",
}


def comment(run: Run, rows: Sequence[PairResult]) -> str:
    """The comment: a headline from the exit code, a table of what moved, what did not pass, what was not gated, the rest, the machine."""
    code = run.exit_code or 0
    headline = "interrupted" if run.interrupted else _HEADLINES.get(code, "failed") if code else _headline_of_good(rows)
    ended = f" (exit code {code})" if code else ""
    parts = [f"{MARK}\n### Benchmarks: {headline}{ended}", *(f"**Note**: {markdown_cell(note)}" for note in run.notes)]
    if baseline := against_text(run):
        parts.append(f"**Baseline**: {markdown_cell(baseline)}.")
    if why := exit_reason(code, rows):
        parts.append(markdown_cell(f"Exit code {code}: {why}."))
    parts += ["\n".join(_table(rows)), "\n".join(_not_passed(rows)), "\n".join(_ungated(rows)), _counted(rows)]
    if left := unreached(rows, run):
        parts.append(markdown_cell(f"Not reached: {few(left)}."))
    parts.append(markdown_cell(f"{counts_text(rows)}. {machine_text(run.environment)}."))
    return "\n\n".join(filter(None, parts)) + "\n"


def _headline_of_good(rows: Sequence[PairResult]) -> str:
    """What exit code 0 says: of timings that no gate held to anything it says nothing."""
    if not any(row.timings for row in rows):
        return "nothing was timed"
    if not any(verdict.changes for _, _, verdict in _verdicts(rows)):
        return "nothing was gated"
    return "nothing that was gated got slower" if list(ungated(rows)) else "nothing got slower"


def _verdicts(rows: Iterable[PairResult]) -> list[tuple[PairResult, str, Verdict]]:
    return [(row, shape, verdict) for row in rows for shape, verdict in row.verdicts.items()]


def _table(rows: Sequence[PairResult]) -> Iterator[str]:
    found = [each for kind in _MOVED for each in _verdicts(rows) if each[2].kind is kind]
    if not found:
        return
    yield "| target | speedup [95 %] | figure | change [99 %] | band | verdict |"
    yield "| --- | ---: | --- | ---: | ---: | --- |"
    for row, shape, verdict in found[:MOST_ROWS]:
        ratio = shown_ratios(row.timings[shape]).get(OPTIMIZED)
        said = f"{verdict.kind}{', accepted' if verdict.accepted else ''}"
        moved = [(name, change) for name, change in verdict.changes.items() if change.kind is verdict.kind] or [*verdict.changes.items()]
        name, change = moved[0] if moved else ("", None)
        figures = (name, percent_text(change.percent), f"{change.band_percent:.2g} %") if change else ("", "", "")
        cells = (row.target + at_shape(shape), speedup_text(ratio) if ratio else "", *figures, said)
        yield f"| {' | '.join(map(markdown_cell, cells))} |"
    if len(found) > MOST_ROWS:
        yield f"\n{len(found) - MOST_ROWS} more rows moved: see report.md."


def _not_passed(rows: Iterable[PairResult]) -> Iterator[str]:
    """A line for each row that failed; a skip is no news."""
    for row in [row for row in rows if row.status not in (Status.PASSED, Status.SKIPPED)][:MOST_ROWS]:
        reason = one_line(row.reason)
        cut = reason if len(reason) <= _MOST_CHARACTERS else f"{reason[:_MOST_CHARACTERS]}\N{HORIZONTAL ELLIPSIS}"
        yield f"- **{row.status}** {markdown_cell(f'{row.target}: {cut}')}"


def _ungated(rows: Sequence[PairResult]) -> Iterator[str]:
    """A line for each timing that was not gated, with its speedup and why: whether it moved is for the reader to say."""
    found = list(ungated(rows))
    if not found:
        return
    yield f"Not gated, so not in the verdict: {len(found)}.\n"
    for row, shape, why in found[:MOST_ROWS]:
        ratio = shown_ratios(row.timings[shape]).get(OPTIMIZED)
        speedup = f" {speedup_text(ratio)};" if ratio else ""
        yield f"- {markdown_cell(f'{row.target}{at_shape(shape)}:{speedup} {why}')}"
    if len(found) > MOST_ROWS:
        yield f"\n{len(found) - MOST_ROWS} more were not gated: see report.md."


def _counted(rows: Iterable[PairResult]) -> str:
    count = [verdict.kind for _, _, verdict in _verdicts(rows)].count(VerdictKind.SAME)
    return f"Timings that did not move: {count} as expected." if count else ""
