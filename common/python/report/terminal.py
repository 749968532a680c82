"""What a person sees while a run goes on and when it is over: one live line on a terminal, plain lines in a pipe, then a table."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from common.python.errors import Status
from common.python.machine.ceilings import MachineCeilings
from common.python.machine.doctor import Finding
from common.python.machine.roofline import value_text
from common.python.profile.explain import reasons
from common.python.report.rows import (
    BRANCH,
    Line,
    against_text,
    counts_text,
    few,
    lines_of,
    machine_text,
    proofs_summary,
    remarks,
    shown_ratios,
    side_titles,
    skips_summary,
    unreached,
    verdict_text,
)
from common.python.report.served import COLUMNS, SHORT, ServedLine, served_lines
from common.python.report.ungated import accepted_text, exit_reason
from common.python.results import BASELINE, OPTIMIZED, PairResult, Run
from common.python.session.planning import Plan
from common.python.wording import at_shape, one_line, speedup_text

PIPED_WIDTH = 140
_GAP = 2
_NARROWEST_NAME = 20
_FEW = 2  # targets, that a line can name
_BREAKS_NAMES, _ALWAYS = 5, 9


def console_for(*, json_output: bool) -> Console:
    """Where progress and tables go: stdout; with `--json` stderr, and that only if it is a terminal."""
    console = Console(stderr=json_output, highlight=False, markup=False, emoji=False)
    console.quiet = json_output and not console.is_terminal
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


class Progress:
    """One line a target that ran, when it is done; on a terminal also a live one, with the running estimate, while it is not.

    Why a row did not pass is told once, under the table. `verbose` tells in a pipe, too, which target begins, what is done to it after
    how many seconds, and which was skipped.
    The live line is drawn when there is news, not by a timer: nothing of ours runs beside a side that is being timed.
    """

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        animated = console.is_terminal and not console.is_dumb_terminal
        self._live = (
            Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False) if animated else None
        )
        self._place = ""
        self._began = time.monotonic()  # until the first row begins: sides are built before it

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def note(self, sentence: str) -> None:
        """Something to know that is not about the row in flight; this line stays."""
        _say(self._console, Text(one_line(sentence)))

    def started(self, target: str, index: int, total: int) -> None:
        """`target` begins, the `index`th of `total`, counted from 1."""
        self._place = f"[{index:>{len(str(total))}}/{total}]"
        self._began = time.monotonic()
        if self._live is None and self._verbose:
            _say(self._console, Text(f"{self._place} {target}"))
        self._draw(target, "")

    def phase(self, target: str, text: str) -> None:
        """What is being done to `target` now, or its running estimate: the live line's text."""
        if self._live is None and self._verbose:
            who = " ".join(filter(None, (self._place, target)))  # neither is known of what is built before the first row
            _say(self._console, Text(f"{who} {time.monotonic() - self._began:.1f} s: {one_line(text)}".lstrip()))
        self._draw(target, text)

    def finished(self, row: PairResult) -> None:
        """`row` is done; this line stays. A skip is no news: it is counted at the end."""
        if self._live is not None:
            self._live.update(Text(""), refresh=True)
        if self._verbose or row.status is not Status.SKIPPED:
            _say(self._console, Text(f"{self._place} ").append(_headline(row)))

    def _draw(self, target: str, text: str) -> None:
        if self._live is not None:
            self._live.update(Text(f"{self._place} {target}  {one_line(text)}", no_wrap=True, overflow="ellipsis"), refresh=True)


def _say(console: Console, text: Text) -> None:
    """Print whole lines: a terminal wraps them at words, a pipe gets them as they are, for grep."""
    console.print(text, soft_wrap=not console.is_terminal)


def _headline(row: PairResult) -> Text:
    """A row as one line: status, target, and its speedups or times if it has any."""
    text = Text().append(str(row.status), _STYLE_OF.get(row.status, "red")).append(f" {row.target}")
    lines = lines_of(row)
    speedups = [(line, line.speedup) for line in lines if line.speedup]
    figures = speedups or [(line, figure) for line in lines if (figure := line.side or line.baseline)]
    names = [line.label.removeprefix(row.target).strip(f" {BRANCH}") if len(figures) > 1 else "" for line, _ in figures]
    told = [f"{name} {figure}".lstrip() for name, (_, figure) in zip(names, figures, strict=True)]
    return text.append(f"  {', '.join(told)}".rstrip())


_STYLE_OF = {Status.PASSED: "green", Status.SKIPPED: "yellow"}


@dataclass(frozen=True)
class _Column:
    """A column of the result table, and how much it matters where there is no room for all."""

    title: str
    importance: int
    value: Callable[[Line], str]
    justify: Literal["left", "right"] = "left"


_COLUMNS = (
    _Column("target", _ALWAYS, lambda line: line.label),
    _Column("baseline", _BREAKS_NAMES, lambda line: line.baseline, "right"),
    _Column("optimized", _BREAKS_NAMES + 1, lambda line: line.side, "right"),
    _Column("speedup [95 %]", _ALWAYS, lambda line: line.speedup, "right"),
    _Column("over the rung before", _BREAKS_NAMES + 2, lambda line: line.rung, "right"),
    _Column("share", 3, lambda line: line.share, "right"),
    _Column("outcome", _ALWAYS, lambda line: line.verdict or line.status),
    _Column("proofs", 4, lambda line: line.proofs),
    _Column("units", 2, lambda line: line.units, "right"),
    _Column("conditions", 1, lambda line: line.conditions),
)


def print_results(rows: Sequence[PairResult], run: Run, console: Console, *, verbose: bool = False) -> None:
    """The table of all rows, then in whole sentences what needs attention: what failed, what to know of the rest, why sides are faster.

    Skips and proofs are counted; `verbose` lists each.
    """
    _say(console, Text(machine_text(run.environment)))
    if baseline := against_text(run):
        _say(console, Text(f"baseline: {baseline}"))
    if rows:
        console.print()
        console.print(_table([line for row in rows for line in lines_of(row)], console.width, side_titles(run)))
    if served := served_lines(rows):
        console.print()
        console.print(_served_table(served))
    told = [row for row in rows if row.status is not Status.PASSED and (verbose or row.status is not Status.SKIPPED)]
    sentences = [_headline(row).append(f": {one_line(row.reason)}") for row in told]
    remarked = [remark for row in rows for remark in remarks(row, everything=verbose)]
    sentences += [Text(sentence) for sentence in _shared(remarked, len(rows))]
    sentences += [Text(f"{row.target}: {reason.headline}") for row in rows for reason in reasons(row) if reason.side != "library"]
    counted = [sentence for sentence in (proofs_summary(rows), *([] if verbose else skips_summary(rows))) if sentence]
    sentences += [Text(sentence) for sentence in (["; ".join(counted)] if len(counted) == 2 else counted)]
    for number, sentence in enumerate(sentences):
        if number == 0:
            console.print()
        _say(console, sentence)
    console.print()
    _say(console, Text(f"{counts_text(rows)}{_cut_short(rows, run)}"))
    if accepted := accepted_text(run, rows):
        _say(console, Text(accepted))
    if why := exit_reason(run.exit_code, rows):
        _say(console, Text(f"exit {run.exit_code}: {why}"))


def _served_table(lines: Sequence[ServedLine]) -> Table:
    """What requests saw, a line a load and side."""
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for name in SHORT:
        title = COLUMNS[name]
        table.add_column(title.removeprefix(">"), justify="right" if title.startswith(">") else "left", overflow="fold")
    for line in lines:
        table.add_row(*(Text(getattr(line, name)) for name in SHORT))
    return table


def _cut_short(rows: Sequence[PairResult], run: Run) -> str:
    """That a run was interrupted, and before which targets were done."""
    left = unreached(rows, run)
    return f", interrupted{f': {len(left)} not done ({few(left)})' if left else ''}" if run.interrupted else ""


def _shared(remarks_of_rows: Sequence[str], rows: int) -> list[str]:
    """Remarks of the form `target: sentence`, where several rows share a sentence as one line that names them."""
    targets: dict[str, list[str]] = {}
    for remark in remarks_of_rows:
        target, _, sentence = remark.partition(": ")
        targets.setdefault(sentence, []).append(target)
    named = {sentence: list(dict.fromkeys(found)) for sentence, found in targets.items()}
    return [f"{f'all {rows} targets' if len(found) == rows > _FEW else ', '.join(found)}: {sentence}" for sentence, found in named.items()]


def print_comparison(before: Mapping[str, PairResult], after: Sequence[PairResult], missing: Iterable[str], console: Console) -> None:
    """A table of what two runs both timed, then their verdicts in whole sentences, then what only one of them has."""
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    titles = ("target", "speedup in A [95 %]", "speedup in B [95 %]", "verdict")
    for title in titles:
        table.add_column(title, justify="right" if title.startswith("speedup") else "left", no_wrap=title != "target", overflow="fold")
    sentences, lines = [], []
    for row in after:
        for shape, verdict in row.verdicts.items():
            speedups = [shown_ratios(known.timings[shape]).get(OPTIMIZED) for known in (before[row.target], row)]
            name = f"{row.target}{at_shape(shape)}"
            lines.append((name, *(speedup_text(speedup) if speedup else "" for speedup in speedups), str(verdict.kind)))
            sentences.append(f"{name}: {verdict_text(verdict)}")
    room = console.width - sum(max(map(cell_len, column)) + _GAP for column in list(zip(titles, *lines, strict=True))[1:])
    for name, *others in lines:
        table.add_row(Text(broken(name, room)), *map(Text, others))
    if sentences:
        console.print(table)
        console.print()
    for sentence in [*sentences, *missing]:
        _say(console, Text(sentence))


def print_plans(plans: Iterable[Plan], notes: Iterable[str], console: Console) -> None:
    """What a run would do, a line a row, after what there is to know of the request."""
    for note in notes:
        _say(console, Text(one_line(note)))
    for plan in plans:
        if plan.skip:
            intent = f"{Status.SKIPPED}: {one_line(plan.skip)}"
        else:
            shapes = [f"{name} ({', '.join(f'{key}={value}' for key, value in shape.items())})" for name, shape in plan.timed.items()]
            timed = f"timed by the {plan.clock} clock at {', '.join(shapes)}" if shapes else "checked, not timed"
            left_out = "".join(f"; {side} left out: {one_line(why)}" for side, why in plan.left_out.items())
            intent = f"{', '.join(plan.sides)} on {plan.device}, {timed}{left_out}"
        _say(console, Text(f"{plan.target}: {intent}"))


def _table(lines: list[Line], width: int, titles: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    columns = _fitting(lines, width, titles)
    others = [max(cell_len(text) for text in [column.title, *map(column.value, lines)]) + _GAP for column in columns[1:]]
    for column in columns:
        # Only a target's name may be broken: a number that is cut or wrapped is another number.
        table.add_column(Text(column.title), justify=column.justify, no_wrap=column is not _COLUMNS[0], overflow="fold")
    for line in lines:
        table.add_row(Text(broken(line.label, width - sum(others))), *(Text(column.value(line)) for column in columns[1:]))
    return table


def broken(name: str, width: int) -> str:
    """`name` in lines of at most `width`, each of whole words where a word fits: it breaks behind `:`, `/`, `_` and spaces."""
    lines = [""]
    for word in re.findall(r"[^:/_ ]*[:/_ ]?", name):
        if lines[-1] and cell_len(f"{lines[-1]}{word}".rstrip()) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(line.rstrip() for line in lines)


def _fitting(lines: list[Line], width: int, titles: tuple[str, str]) -> list[_Column]:
    """The columns that have anything to show and fit: the least important go first, then names are broken, then times go."""
    named = dict(zip((BASELINE, OPTIMIZED), titles, strict=True))
    called = [replace(column, title=named[column.title]) if column.title in named else column for column in _COLUMNS]
    columns = [column for column in called if any(column.value(line) for line in lines)]
    widths = {column: max(cell_len(text) for text in [column.title, *map(column.value, lines)]) for column in columns}
    for column in sorted(columns, key=lambda column: column.importance):
        name = widths[_COLUMNS[0]] if column.importance < _BREAKS_NAMES else min(widths[_COLUMNS[0]], _NARROWEST_NAME)
        needed = name + sum(widths[other] for other in columns[1:]) + _GAP * (len(columns) - 1)
        if needed > width and column.importance < _ALWAYS:
            columns.remove(column)
    return columns


def print_ceilings(found: MachineCeilings, path: Path, console: Console) -> None:
    """A table of one machine's ceilings, what is missing and why, and where all of it is kept."""
    versions = [f"driver {found.driver}"] if found.driver else []
    _say(console, Text(f"\n{', '.join([found.name, *versions, f'torch {found.torch}', found.measured, f'{found.seconds:.0f} s'])}"))
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for title in ("ceiling", "value", "half-width", "mode", "L2 before", "SM clock", "samples", "how"):
        numeric = title in ("value", "half-width", "SM clock", "samples")
        table.add_column(title, justify="right" if numeric else "left", no_wrap=title != "how", overflow="fold")
    for ceiling in found.ceilings:
        table.add_row(
            Text(ceiling.name),
            Text(value_text(ceiling.value.estimate, ceiling.unit)),
            Text(f"{ceiling.value.half_width_percent:.2f} %"),
            Text(ceiling.mode),
            Text("" if ceiling.l2 == "none" else ceiling.l2),
            Text("" if ceiling.sm_clock_hz is None else f"{ceiling.sm_clock_hz / 1e6:.0f} MHz"),
            Text(str(ceiling.samples)),
            Text(ceiling.how),
        )
    console.print(table)
    for name, reason in found.missing.items():
        _say(console, Text(f"not measured: {name}: {one_line(reason)}"))
    for note in found.notes:
        _say(console, Text(one_line(note)))
    _say(console, Text(str(path)))


_STYLE_OF_LEVEL = {"ok": "green", "warn": "yellow", "bad": "red"}


def print_findings(findings: Iterable[Finding], console: Console) -> None:
    """What `doctor` found, a line each, with its advice below where there is something to do."""
    findings = list(findings)
    width = max(cell_len(finding.name) for finding in findings)
    for finding in findings:
        line = Text().append(f"{finding.level:<5}", _STYLE_OF_LEVEL[finding.level]).append(f"{finding.name:<{width}}  {finding.found}")
        _say(console, line)
        if finding.advice:
            _say(console, Text(f"{'':5}{'':{width}}  {finding.advice}", "dim"))
    counts = Counter(finding.level for finding in findings)
    _say(console, Text(f"\n{counts['ok']} ok, {counts['warn']} to know of, {counts['bad']} bad"))
