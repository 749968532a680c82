"""What the HTML report says of one pair, a function a part: PARTS is the order in which they stand.

To add a part, write a function from a row and its run to the parts it has to show, none where the row has no such data, and name it
in PARTS. A table belongs in `report.sections` instead: then the Markdown report has it too.
"""

from __future__ import annotations

import difflib
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from markupsafe import Markup, escape
from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import CudaLexer, PythonLexer  # type: ignore[import-untyped]
from pygments.token import Comment, Keyword, Number, String, Token  # type: ignore[import-untyped]

from common.python.gate.statistics import climbed, gated_logs
from common.python.pairs.discovery import LIBRARY
from common.python.pairs.goals import TIME
from common.python.pairs.sources import text_at
from common.python.profile.advice import diagnoses
from common.python.profile.explain import reasons
from common.python.report.charts import Curve, Effect, Strip, curve, effect_of, strip
from common.python.report.rows import checkout_text, error_text, shown_ratios
from common.python.report.tables import REASONS, Column, Section, sections
from common.python.results import BASELINE, OPTIMIZED, Check, Interval, PairResult, PairTiming, Run, SideResult, Unit
from common.python.wording import at_shape, figure_interval_text, figure_text, interval_text, one_line, speedup_text, time_text

RUNG = "rung"
_CLOCKS_DIFFER = 1.005


@dataclass(frozen=True)
class Panel:
    """One strip plot: `kind` is the side that it is of, `value` the figure that its samples make, `caption` what they are."""

    kind: str
    title: str
    value: str
    caption: str
    strip: Strip


@dataclass(frozen=True)
class Part:
    """A titled piece of the report; `kind` names the macro of parts.html.jinja that draws `content`; a folded one opens on a click."""

    kind: Literal["facts", "panels", "table", "code", "sweep"]
    title: str
    content: Sequence[tuple[str, str]] | Sequence[Panel] | Section | Listing | Curve
    note: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Headline:
    """The figure of one shape and side in large type, and in `words` what it means."""

    label: str
    figure: str
    effect: Effect
    words: str


def headlines(row: PairResult) -> list[Headline]:
    """A headline a shape and side that has a speedup, or a gain at the goal that the row has instead of time."""
    found = []
    for shape, timing in row.timings.items():
        for side in _compared(timing):
            ratio = shown_ratios(timing)[side]
            effect = effect_of(ratio)
            both = " → ".join(_figure(timing, name) for name in (BASELINE, side))
            over = [f"; {speedup_text(timing.rungs[side])} over {before}" for before, after in climbed(timing) if after == side]
            label = " ".join(filter(None, ("" if side == OPTIMIZED else side, at_shape(shape).strip())))
            words = _EFFECTS[effect] if not timing.figures else _GOAL_EFFECTS[effect].format(goal=timing.goal)
            found.append(Headline(label, speedup_text(ratio), effect, f"{both}: {words}{''.join(over)}"))
    return found


def _compared(timing: PairTiming) -> list[str]:
    """The sides that are compared: the optimized one, then the others in the order in which they are stated."""
    return sorted((side for side in timing.time_ns if side in shown_ratios(timing)), key=lambda side: side != OPTIMIZED)


def _figure(timing: PairTiming, side: str) -> str:
    return figure_text(timing.figures[side].estimate, timing.unit) if timing.figures else time_text(timing.time_ns[side].estimate)


_EFFECTS: dict[Effect, str] = {
    "faster": "faster, all of the 95 % interval lies above 1x",
    "slower": "slower, all of the 95 % interval lies below 1x",
    "undecided": "not decided, the 95 % interval holds 1x",
}

_GOAL_EFFECTS: dict[Effect, str] = {
    "faster": "better at {goal}, all of the 95 % interval lies above 1x",
    "slower": "worse at {goal}, all of the 95 % interval lies below 1x",
    "undecided": "not decided at {goal}, the 95 % interval holds 1x",
}


def why(row: PairResult, _: Run) -> Iterator[Part]:
    """What the idea is, what was expected of it before it was measured, and what shows that it is there."""
    facts = [("Idea", row.idea)]
    for side, result in row.sides.items():
        # What is predicted is of a GPU: beside a CPU's times that must be said.
        of_gpu = " on a GPU" if any(timing.device == "cpu" for timing in row.timings.values()) else ""
        titles = _WRITTEN | {"expects": _WRITTEN["expects"] + of_gpu}
        facts += [(_of(title, side), result.directives[key]) for key, title in titles.items() if key in result.directives]
    for state, title in _PROOF_STATES.items():
        facts.append((title, ", ".join(f"{proof.claim} in {proof.side}" for proof in row.proofs if proof.state == state)))
    facts += [(reason.title, reason.words) for reason in reasons(row)]
    bounds = [f"{found.side}{at_shape(found.shape)} {found.bottleneck}: {found.rests_on}" for found in diagnoses(row)]
    facts += [("Bound by", "; ".join(bounds))]
    told = [(name, one_line(text)) for name, text in facts if text]
    if told:
        yield Part("facts", "Why", told)


_WRITTEN = {"expects": "Expected", "reason": "Reason", "needs": "Needs", "allows": "Allowed in a step"}
_PROOF_STATES = {"proven": "Proven", "failed": "Disproved", "unchecked": "Not checked"}


def _of(title: str, side: str) -> str:
    return title if side == OPTIMIZED else f"{title} of {side}"


def samples(row: PairResult, _: Run) -> Iterator[Part]:
    """Every raw sample: the speedup of each process pair, then the times of each side, then the clocks they were taken at."""
    for shape, timing in row.timings.items():
        panels = [_ratios(timing, side) for side in _compared(timing)]
        panels += [_figures(timing, side) for side in timing.figures]
        panels += [_times(timing, side) for side in timing.time_ns]
        panels += [panel for side in timing.time_ns for panel in _clocks(timing, side)]
        entries = ", ".join(f"{key}={value}" for key, value in timing.shape.items())
        yield Part("panels", f"Samples {at_shape(shape)}".strip(), panels, note=entries)


def _ratios(timing: PairTiming, side: str) -> Panel:
    ratio = shown_ratios(timing)[side]
    values = [[math.exp(log)] for log in gated_logs(timing.units, timing.goal if timing.figures else TIME, (BASELINE, side))]
    title = f"Gain of {side} at {timing.goal}" if timing.figures else f"Speedup of {side}"
    return Panel(kind_of(side), title, speedup_text(ratio), f"{len(values)} process pairs, a dot each", strip(values, ratio))


def _figures(timing: PairTiming, side: str) -> Panel:
    figure = timing.figures[side]
    values = [[unit.figures[side]] for unit in timing.units]
    title, words = f"{timing.goal.capitalize()} of {side}", figure_interval_text(figure, timing.unit)
    return Panel(kind_of(side), title, words, f"{len(values)} processes, a dot each", strip(values, figure))


def _times(timing: PairTiming, side: str) -> Panel:
    time = timing.time_ns[side]
    drawn = strip([_samples_ns(unit, side) for unit in timing.units], time)
    words = [f"{drawn.values} samples"]
    if (calls := timing.calls_per_sample.get(side, 1)) > 1:
        words.append(f"of {calls} calls")
    if clocks := [clock for unit in timing.units for block in unit.blocks[side] for clock in block.sm_clock_hz]:
        words.append(f"at {min(clocks) / 1e6:.0f} to {max(clocks) / 1e6:.0f} MHz")
    if drawn.outside:
        words.append(f"; {drawn.outside} beyond the edge, the furthest {drawn.furthest:+.3g} %")
    return Panel(kind_of(side), f"Time of {side}", interval_text(time), " ".join(words).replace(" ;", ";"), drawn)


def _clocks(timing: PairTiming, side: str) -> Iterator[Panel]:
    """The clocks that the blocks of a side held, where they differ enough to tell in its times."""
    units = [[statistics.median(block.sm_clock_hz) for block in unit.blocks[side] if block.sm_clock_hz] for unit in timing.units]
    held = [clock for unit in units for clock in unit]
    if all(units) and max(held) > _CLOCKS_DIFFER * min(held):
        middle = statistics.median(held)
        drawn = strip(units, Interval(estimate=middle, low=middle, high=middle))
        yield Panel(kind_of(side), f"SM clock of {side}", f"{middle / 1e6:.0f} MHz", "the median of each block", drawn)


def _samples_ns(unit: Unit, side: str) -> list[float]:
    return [sample for block in unit.blocks[side] for sample in block.samples_ns]


def kind_of(side: str) -> str:
    """The class that a side is drawn as: baseline, optimized, library, or a rung of a ladder."""
    return side if side in (BASELINE, OPTIMIZED, LIBRARY) else RUNG


def code(row: PairResult, run: Run) -> Iterator[Part]:
    """Each side as what it changes in the one before it, whole if that is of another language or for the library; then the workload."""
    note = _measured_at(run)
    files = {side: result.file for side, result in row.sides.items()}
    steps = {
        after: files[before]
        for before, after in pairwise(files)
        if after != LIBRARY and _path(run, files[before]).suffix == _path(run, files[after]).suffix
    }
    for side, file in files.items():
        if side in steps:
            yield Part("code", f"Diff: {steps[side]} → {file}", _listing(run, steps[side], file), note, folded=True)
        elif file not in steps.values():
            yield Part("code", f"{side.capitalize()}: {file}", _listing(run, file), note, folded=True)
    for before, after in _imports(row, run):
        title = f"Diff: {before} → {after}" if before and after else f"Imported by one side: {before or after}"
        yield Part("code", title, _listing(run, *filter(None, (before, after))), note, folded=True)
    yield Part("code", f"Workload: {row.workload_file}", _listing(run, row.workload_file), note, folded=True)


def _imports(row: PairResult, run: Run) -> Iterator[tuple[str, str]]:
    """Of --against, each file that differs between what the two sides imported: as it was, and as it is; "" where it is not."""
    named = [{str(_path(run, file)): file for file in result.imports} for result in row.sides.values()]
    then, now = named if len(named) == 2 else ({}, {})
    for name in sorted(then | now):
        # What the workload imports too is imported by its side already.
        yield then.get(name, ""), now.get(name, name if (run.root / name).is_file() else "")


def _path(run: Run, file: str) -> Path:
    """The path of a side's file from the root, whatever revision it is of."""
    return Path(file.removesuffix(_at(run)))


def _at(run: Run) -> str:
    """What stands behind the name of a file of the revision of --against."""
    return f" at {run.settings['against']}" if run.settings.get("against") else ""


def _measured_at(run: Run) -> str:
    """At which commit the files were measured: what is shown is what they hold when the report is made."""
    source = run.environment.get("root")
    if not source:
        return "as the file is now; measured outside a git checkout"
    return f"as the file is now; measured at commit {checkout_text(source)}"


def _listing(run: Run, *files: str) -> Listing:
    """A file under the root, or what the second of two changes in the first; where it cannot be read, a listing that says so."""
    root = run.root
    try:
        paths = [(root / _path(run, file)).resolve() for file in files]
        if outside := [path for path in paths if not path.is_relative_to(root.resolve())]:
            return Listing(f"not shown: {outside[0]} is not under {root}")
        texts = [_text(run, file, path) for file, path in zip(files, paths, strict=True)]
        if missing := [file for file, text in zip(files, texts, strict=True) if text is None]:
            return Listing(f"not shown: git has no {missing[0]} in {root}")
        sources = [Source(path, text or "") for path, text in zip(paths, texts, strict=True)]
        return whole(*sources) if len(sources) == 1 else changes(*sources)
    except OSError as error:
        return Listing(f"not shown: {error.filename}: {error.strerror}")
    except RuntimeError:
        return Listing(f"not shown: {' or '.join(files)} is a link that leads back to itself")
    except UnicodeDecodeError:
        return Listing(f"not shown: {' or '.join(files)} is not UTF-8 text")


def _text(run: Run, file: str, path: Path) -> str | None:
    """The text of a file; of one at the revision of --against as git has it, None where it has none."""
    if not (_at(run) and file.endswith(_at(run))):
        return path.read_text(encoding="utf-8")
    return text_at(run.root, run.against, str(_path(run, file)))


def tables(row: PairResult, run: Run) -> Iterator[Part]:
    """The tables of `report.sections` for this row alone; the target, the same in every line, gives way to the shape."""
    for section in sections([row], run.root):
        if section.folded and section.title != REASONS:  # they stand first, in `why`
            entries = [(entry[0].removeprefix(row.target).strip(), *entry[1:]) for entry in section.rows]
            yield Part("table", section.title, compact(Section(section.title, (Column("shape"), *section.columns[1:]), entries)))


def checks(row: PairResult, _: Run) -> Iterator[Part]:
    """How far each side was from the reference, at every shape that was checked, in timed calls and before them."""
    found: dict[tuple[str, bool, str], list[Check]] = {}
    for side, result in row.sides.items():
        for check in result.checks:
            shape = " ".join(f"{key}={value}" for key, value in check.shape.items())
            found.setdefault((shape, check.timed_call, side), []).append(check)
    entries = [
        (shape, "timed calls" if timed else "before timing", side, str(len(group)), error_text(SideResult(file="", checks=tuple(group))))
        for (shape, timed, side), group in found.items()
    ]
    columns = (Column("shape"), Column("when"), Column("side"), Column("calls", numeric=True), Column("largest error"))
    if entries:
        yield Part("table", "Checked against the reference", Section("", columns, entries), folded=True)


def compact(section: Section) -> Section:
    """`section` without the columns that say nothing."""
    kept = [number for number in range(len(section.columns)) if any(entry[number] for entry in section.rows)]
    rows = [tuple(entry[number] for number in kept) for entry in section.rows]
    return Section(section.title, tuple(section.columns[number] for number in kept), rows)


def sweep(row: PairResult, run: Run) -> Iterator[Part]:
    """The curve of a run with --sweep: each side's time at every value of the shape entry."""
    for key, values in run.settings.get("sweep", {}).items():
        timed = [(value, row.timings[f"{key}={value}"]) for value in values if f"{key}={value}" in row.timings]
        if len(timed) < 2:
            continue
        names = [side for side in timed[0][1].time_ns if all(side in timing.time_ns for _, timing in timed)]
        sides = [(kind_of(side), [timing.time_ns[side] for _, timing in timed]) for side in names]
        words = f"Time over {key}: {', '.join(names)}; a whisker is the 95 % interval."
        yield Part("sweep", f"Sweep of {key}", curve([value for value, _ in timed], sides), note=words)


PARTS: tuple[Callable[[PairResult, Run], Iterator[Part]], ...] = (why, sweep, code, samples, tables, checks)


_CONTEXT_LINES = 3
_CLASSES = ((Comment.Preproc, "p"), (Comment, "c"), (Keyword, "k"), (String, "s"), (Number, "n"))


@dataclass(frozen=True)
class CodeLine:
    """One line; `kind` is what became of it, `gap` where unchanged lines are left out before the next."""

    kind: Literal["same", "added", "removed", "gap"]
    code: Markup


@dataclass(frozen=True)
class Listing:
    """A piece of source; `note` says in words how much it is, or why there is nothing to show."""

    note: str
    lines: tuple[CodeLine, ...] = ()


@dataclass(frozen=True)
class Source:
    """A file's text; its path says in which language."""

    path: Path
    text: str


def whole(source: Source) -> Listing:
    """All of a file."""
    lines = _highlighted(source.path, source.text)
    return Listing(f"{len(lines)} lines", tuple(CodeLine("same", line) for line in lines))


def changes(before: Source, after: Source) -> Listing:
    """What `after` has that `before` has not, and the other way round, with the lines around."""
    old, new = (_highlighted(source.path, source.text) for source in (before, after))
    matcher = difflib.SequenceMatcher(None, _lines(before.text), _lines(after.text), autojunk=False)
    lines: list[CodeLine] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        if lines or group[0][3] > 0:
            lines.append(CodeLine("gap", Markup()))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += _lines_of("same", new[new_from:new_to])
            else:
                lines += [*_lines_of("removed", old[old_from:old_to]), *_lines_of("added", new[new_from:new_to])]
    added, removed = (sum(line.kind == kind for line in lines) for kind in ("added", "removed"))
    return Listing(f"{added} lines added, {removed} removed" if lines else "the two files are the same", tuple(lines))


def _lines_of(kind: Literal["same", "added", "removed"], lines: Iterable[Markup]) -> list[CodeLine]:
    return [CodeLine(kind, line) for line in lines]


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _highlighted(path: Path, text: str) -> list[Markup]:
    """The lines of `text`, those that `_lines` finds, escaped, with the words that a reader's eye sorts by marked."""
    lines: list[Markup] = []
    line = Markup()
    for token, piece in _lexer(path).get_tokens(text.removesuffix("\n")):
        for number, part in enumerate(piece.split("\n")):
            if number:
                lines.append(line)
                line = Markup()
            line += _marked(token, part)
    return [*lines, line]


def _lexer(path: Path) -> Lexer:
    return (PythonLexer if path.suffix == ".py" else CudaLexer)(stripnl=False, ensurenl=False)


def _marked(token: Token, text: str) -> Markup:
    css = next((name for kind, name in _CLASSES if token in kind), "")
    return Markup("<i class={}>{}</i>").format(css, text) if css and text.strip() else escape(text)
