"""What a run says to people and to CI, as Markdown for a pull request and as JUnit XML; both show a time only for a row that passed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import jinja2

from common.python.errors import Status
from common.python.figures import (
    at_shape,
    break_even_text,
    bytes_text,
    conditions_text,
    counts_text,
    error_text,
    interval_text,
    lines_of,
    machine_text,
    notes_of,
    one_line,
    percent_text,
    settings_text,
    setup_text,
    significant,
    verdict_text,
)
from common.python.results import PairResult, Run, VerdictKind

_TEMPLATES = Path(__file__).parent / "templates"
_MARKDOWN_SYNTAX = re.compile(r"([\\`*|<&~]|\](?=\()|(?<![^\W_])_|_(?![^\W_]))")
# Everything but the characters that XML 1.0 allows; a compiler's coloured message has others.
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Column:
    """A heading, and whether what stands below it is aligned as a number."""

    title: str
    numeric: bool = False


@dataclass(frozen=True)
class Section:
    """A table under a title; a folded one opens on a click. What a template renders, whatever the format."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[str, ...]]
    folded: bool = True


def markdown(run: Run, rows: Sequence[PairResult]) -> str:
    """The report for a pull request: results and what failed in sight, how each number came about folded away."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), undefined=jinja2.StrictUndefined, trim_blocks=True, autoescape=False
    )
    environment.filters["cell"] = _markdown_cell
    return environment.get_template("report.md.jinja").render(
        run=run,
        machine=machine_text(run.environment),
        settings=settings_text(run),
        summary=summary(run, rows),
        sections=sections(rows),
    )


def summary(run: Run, rows: Iterable[PairResult]) -> str:
    """One sentence: what became of the targets, and whether the run was cut short."""
    return counts_text(rows) + (", interrupted: further targets were not run." if run.interrupted else ".")


def sections(rows: Sequence[PairResult]) -> list[Section]:
    """The tables of a report, those without rows left out."""
    everything = [_results(rows), _not_passed(rows), _gated(rows), _certainty(rows), _sides(rows), _metrics(rows), _proofs(rows)]
    return [section for section in everything if section.rows]


def _markdown_cell(text: str) -> str:
    return _MARKDOWN_SYNTAX.sub(r"\\\1", one_line(text))


def _columns(titles: str) -> tuple[Column, ...]:
    """Columns from their titles, separated by commas; `>` stands before the title of a column of numbers."""
    return tuple(Column(title.removeprefix(">"), numeric=title.startswith(">")) for title in titles.split(", "))


def _results(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, >baseline, >optimized, >speedup [95 %], status, verdict, proofs")
    lines = [line for row in rows for line in lines_of(row)]
    entries = [(line.label, line.baseline, line.side, line.speedup, line.status, line.verdict, line.proofs) for line in lines]
    return Section("Results", columns, entries, folded=False)


def _not_passed(rows: Sequence[PairResult]) -> Section:
    entries = [(row.target, str(row.status), row.reason) for row in rows if row.status is not Status.PASSED]
    entries.sort(key=lambda entry: entry[1] == Status.SKIPPED)  # a skip is no news; what failed stands first
    return Section("Not passed", _columns("target, status, reason"), entries, folded=False)


def _gated(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, figure, >change [99 %], >band, verdict, what it says")
    entries = []
    for row in rows:
        for shape, verdict in row.verdicts.items():
            whole = (row.target + at_shape(shape), "", "", "", str(verdict.kind), verdict.sentence)
            parts = [
                (whole[0], name, percent_text(change.percent), f"{change.band_percent:.2g} %", str(change.kind), "")
                for name, change in verdict.changes.items()
            ]
            entries += [whole, *parts]
    return Section("Against what was expected", columns, entries)


def _certainty(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, conditions, interleaved, launch latency hidden, >units, >half-width, stopped, notes")
    entries = [
        (
            row.target + at_shape(shape),
            conditions_text(timing),
            "yes" if timing.interleaved else "no",
            "" if timing.clock != "device" else "yes" if timing.launch_latency_hidden else "no",
            str(len(timing.units)),
            ", ".join(f"{speedup.half_width_percent:.2f} %" for speedup in timing.speedups.values()),
            str(timing.stop_reason).replace("_", " "),
            "; ".join([*notes_of(timing), *row.notes]),
        )
        for row in rows
        for shape, timing in row.timings.items()
    ]
    return Section("How certain each number is", columns, entries)


def _sides(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, side, >time [95 %], largest error, set-up, >pays after calls, >peak memory")
    entries = [
        (
            row.target + at_shape(shape),
            side,
            interval_text(time),
            error_text(row.sides[side]),
            setup_text(row.sides[side]),
            break_even_text(row, timing, side),
            "" if (peak := row.sides[side].peak_memory_bytes) is None else bytes_text(peak),
        )
        for row in rows
        for shape, timing in row.timings.items()
        for side, time in timing.time_ns.items()
    ]
    return Section("Each side", columns, entries)


def _metrics(rows: Sequence[PairResult]) -> Section:
    entries = [
        (row.target, side, name, f"{significant(metric.value)} {metric.unit}", "self-reported" if metric.self_reported else "harness")
        for row in rows
        for side, metrics in row.metrics.items()
        for name, metric in metrics.items()
    ]
    return Section("Further figures", _columns("target, side, figure, >value, source"), entries)


def _proofs(rows: Sequence[PairResult]) -> Section:
    entries = [(row.target, proof.side, proof.claim, proof.state, proof.detail) for row in rows for proof in row.proofs]
    return Section("Proofs", _columns("target, side, claim, state, detail"), entries)


def junit(run: Run, rows: Sequence[PairResult]) -> str:
    """JUnit XML, a test case a row: passed, skipped, or failed with its reason; a regression against expectations fails too."""
    suite = ET.Element("testsuite", name="benchmark", timestamp=run.started)
    for row in rows:
        folder, _, name = row.target.partition(":")
        case = ET.SubElement(suite, "testcase", classname=folder, name=name, file=row.workload_file)
        regressions = [
            f"{at_shape(shape)} {verdict_text(verdict)}".strip()
            for shape, verdict in row.verdicts.items()
            if verdict.kind is VerdictKind.REGRESSED and not verdict.accepted
        ]
        if row.status is Status.SKIPPED:
            ET.SubElement(case, "skipped", message=_xml(row.reason))
        elif row.status is not Status.PASSED:
            ET.SubElement(case, "failure", type=str(row.status), message=_xml(row.reason))
        else:
            case.set("time", f"{row.seconds:.3f}")
            if regressions:
                ET.SubElement(case, "failure", type=VerdictKind.REGRESSED, message=_xml("; ".join(regressions)))
    for attribute, kind in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f".//{kind}"))))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
