"""One HTML file a run, complete in itself: what each pair gains, how sure that is, and the samples, the code and the proofs behind it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from common.python.errors import ExitCode, Status
from common.python.machine.ceilings import Ceiling, ceilings_of
from common.python.machine.roofline import value_text
from common.python.report.charts import BOX_HEIGHT, BOX_WIDTH, Reach, Roofline, SpeedupAxis, Whisker, roofline, speedup_axis
from common.python.report.html_pair import PARTS, compact, headlines, kind_of
from common.python.report.rows import against_text, lines_of, machine_text, settings_text, shown_ratios, side_titles, span_text
from common.python.report.tables import Column, Section, sections, share_interval, share_text, summary, title
from common.python.results import OPTIMIZED, PairResult, Run, VerdictKind
from common.python.wording import at_shape, interval_text, one_line, speedup_text, time_text

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Pair:
    """A target's part of the report; `anchor` is its place in the page, `search` what a filter looks through."""

    row: PairResult
    anchor: str
    search: str


@dataclass(frozen=True)
class SpeedupRow:
    """A row of the first chart: a side's speedup at one shape, or in `words` why there is none."""

    pair: Pair
    label: str
    value: str = ""
    words: str = ""
    verdict: str = ""
    whisker: Whisker | None = None
    is_branch: bool = False


@dataclass(frozen=True)
class RooflineEntry:
    """What the roofline's dots of one number are."""

    pair: Pair
    label: str
    words: str


def html(run: Run, rows: Sequence[PairResult], folder: Path | None = None) -> str:
    """The report as one HTML document that needs nothing else, neither to be read nor to be drawn.

    Where it lies in the run's `folder`, what failed has a link to what its processes printed.
    """
    pairs = _pairs(rows)
    axis, chart = _speedup_chart(pairs)
    script, style = (Markup((_TEMPLATES / name).read_text(encoding="utf-8")) for name in ("report.js", "report.css"))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True
    )
    environment.filters["breakable"] = _breakable
    environment.globals.update(box=(BOX_WIDTH, BOX_HEIGHT))
    return environment.get_template("report.html.jinja").render(
        run=run,
        title=title(run, rows),
        logs={pair.anchor: _logs(pair.row, run, folder) for pair in pairs},
        summary=summary(run, rows),
        facts=_facts(run),
        warnings=_warnings(run),
        axis=axis,
        chart=chart if any(entry.whisker for entry in chart) else [],  # of words alone: the results and each target have them
        roofline=_roofline(pairs),
        over=f"the side {side_titles(run)[0]}" if run.settings.get("against") else "the baseline",
        results=_results(pairs, run),
        pairs=[(pair, headlines(pair.row), [part for make in PARTS for part in make(pair.row, run)]) for pair in pairs],
        machine=[_machine(run), *_ceilings(run)],
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=style,
    )


def _breakable(name: str) -> Markup:
    """`name` escaped, with leave to break a line where its words end: no entity holds one of these characters."""
    return Markup(re.sub(r"([:/_])", r"\1<wbr>", str(escape(name))))


def _pairs(rows: Sequence[PairResult]) -> list[Pair]:
    """The rows with an anchor each, made of its target and unlike any other."""
    pairs: dict[str, Pair] = {}
    for row in rows:
        slug = re.sub(r"[^\w.-]+", "-", row.target)
        anchor = next(name for name in (slug, *(f"{slug}-{number}" for number in range(2, len(rows) + 2))) if name not in pairs)
        verdicts = [str(verdict.kind) for verdict in row.verdicts.values()]
        pairs[anchor] = Pair(row, anchor, " ".join((row.target, str(row.status), *verdicts)).lower())
    return list(pairs.values())


def _logs(row: PairResult, run: Run, folder: Path | None) -> list[tuple[str, str]]:
    """The sides of a row that failed whose processes have a log in `folder`, and the address of that from there."""
    if folder is None or row.target not in run.folders or row.status in (Status.PASSED, Status.SKIPPED):
        return []
    paths = {side: f"{run.folders[row.target]}/{side}/log.txt" for side in row.sides}
    return [(side, quote(path)) for side, path in paths.items() if (folder / path).is_file()]


# --- The whole run


def _facts(run: Run) -> list[tuple[str, str]]:
    """What is true of all rows, by name."""
    facts = {
        "Machine": machine_text(run.environment),
        "Settings": settings_text(run),
        "Baseline": against_text(run),
        "Measured": span_text(run),
        "Exit code": ""
        if run.exit_code is None
        else " ".join([str(run.exit_code), *(code.name for code in ExitCode if code == run.exit_code)]),
        "Notes": "; ".join(run.notes),
    }
    return [(name, text) for name, text in facts.items() if text]


def _warnings(run: Run) -> list[str]:
    """What makes every row less certain."""
    found = [one_line(note) for note in run.environment.get("notes", ())]
    if run.interrupted:
        found.append("interrupted: further targets were not run")
    elif run.exit_code is None:
        found.append("this run has not ended, or was killed: what it had by then is here")
    return found


def _machine(run: Run) -> Section:
    """All that is recorded of the machine, a line a fact."""
    entries = [
        (name, one_line(", ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, dict) else str(value)))
        for name, found in run.environment.items()
        for value in (found if isinstance(found, list | tuple) else [found])
        if value not in (None, "", {})
    ]
    return Section("Machine", (Column("fact"), Column("value")), entries)


def _results(pairs: Sequence[Pair], run: Run) -> tuple[tuple[Column, ...], list[tuple[Pair, list[tuple[str, ...]]]]]:
    """The columns of the table of results, but those that say nothing in this run, and each pair's lines of it."""
    if not pairs:
        return (), []
    table = compact(sections([pair.row for pair in pairs], titles=side_titles(run))[0])
    lines = iter(table.rows)
    return table.columns, [(pair, list(islice(lines, len(lines_of(pair.row))))) for pair in pairs]


def _speedup_chart(pairs: Sequence[Pair]) -> tuple[SpeedupAxis, list[SpeedupRow]]:
    """The axis that holds every speedup, and a row for each; a row that has none says why."""
    axis = speedup_axis(speedup for pair in pairs for timing in pair.row.timings.values() for speedup in shown_ratios(timing).values())
    return axis, [entry for pair in pairs for entry in _speedup_rows(pair, axis)]


def _speedup_rows(pair: Pair, axis: SpeedupAxis) -> Iterator[SpeedupRow]:
    row = pair.row
    if not row.timings:
        yield SpeedupRow(pair, row.target, words=one_line(row.reason or "; ".join(row.notes) or "checked, not timed"))
    for shape, timing in row.timings.items():
        head = SpeedupRow(pair, row.target + at_shape(shape), verdict=_news(row, shape))
        found = {
            side: SpeedupRow(pair, side, value=speedup_text(speedup), whisker=axis.whisker(speedup), is_branch=True)
            for side in timing.time_ns  # in the order in which they are stated: a ladder's is that of its steps
            if (speedup := shown_ratios(timing).get(side))
        }
        if own := found.pop(OPTIMIZED, None):
            head = replace(head, value=own.value, whisker=own.whisker)
        elif not found:
            head = replace(head, words=f"one side alone, no speedup: {', '.join(map(interval_text, timing.time_ns.values()))}")
        yield head
        yield from found.values()


def _news(row: PairResult, shape: str) -> str:
    """The verdict on a shape, where it is one to look at."""
    kind = row.verdicts[shape].kind if shape in row.verdicts else VerdictKind.SAME
    return "" if kind in (VerdictKind.SAME, VerdictKind.NEW, VerdictKind.UNGATED) else str(kind)


def _roofline(pairs: Sequence[Pair]) -> tuple[Roofline, list[RooflineEntry]] | None:
    """Every side whose ceiling was measured, and what its number stands for; None where no ceiling was."""
    reaches, entries = [], []
    for pair in pairs:
        for shape, timing in pair.row.timings.items():
            if timing.shares:
                times = {side: share.share * timing.time_ns[side].estimate for side, share in timing.shares.items()}
                reaches.append([Reach(kind_of(side), share_interval(timing, side), ns) for side, ns in times.items()])
                words = ", ".join(f"{side} {share_text(timing, side)}" for side in timing.shares)
                at_ceiling = time_text(next(iter(times.values())))  # the work of a pair is one, and so is its time at the ceiling
                entries.append(RooflineEntry(pair, pair.row.target + at_shape(shape), f"{words}; at the ceiling {at_ceiling}"))
    return (roofline(reaches), entries) if reaches else None


def _ceilings(run: Run) -> list[Section]:
    """What each device of the machine can do at most. Raises BenchmarkError if what run.json holds are no ceilings."""
    columns = tuple(Column(title, numeric=title == "value [95 %]") for title in ("ceiling", "value [95 %]", "mode", "L2", "how"))
    tables = []
    for kept in ceilings_of(run).values():
        entries = [(each.name, _ceiling_text(each), each.mode, each.l2, each.how) for each in kept.ceilings]
        title = f"Ceilings of {kept.name}, measured {kept.measured}"
        tables.append(Section(title, columns, entries))
    return tables


def _ceiling_text(ceiling: Ceiling) -> str:
    low, high = (value_text(end, ceiling.unit) for end in (ceiling.value.low, ceiling.value.high))
    return f"{value_text(ceiling.value.estimate, ceiling.unit)} [{low}, {high}]"
