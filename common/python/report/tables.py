"""What a run says to people and to CI, as Markdown for a pull request and as JUnit XML; both show a time only for a row that passed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import jinja2

from common.python.errors import BenchmarkError, ExitCode, Status
from common.python.gate.predicted import amount_of
from common.python.gate.statistics import climbed
from common.python.pairs.goals import ENERGY, UNITS
from common.python.profile import ncu
from common.python.profile.advice import diagnoses
from common.python.profile.explain import reasons
from common.python.profile.ncu import moved, stall_text, value_text
from common.python.profile.steps import gap_share
from common.python.project import PROJECT_ROOT
from common.python.report import served
from common.python.report.role_trace import lines, sentences, traces_of
from common.python.report.rows import (
    against_text,
    break_even_text,
    compilation_text,
    conditions_text,
    counts_text,
    error_text,
    few,
    lines_of,
    machine_text,
    notes_of,
    settings_text,
    setup_text,
    shown_ratios,
    side_titles,
    slower_text,
    unreached,
    verdict_text,
)
from common.python.report.ungated import exit_reason
from common.python.results import BASELINE, OPTIMIZED, Interval, PairResult, PairTiming, Run, Spread, VerdictKind
from common.python.wording import (
    at_shape,
    bytes_text,
    figure_interval_text,
    interval_text,
    one_line,
    percent_text,
    significant,
    speedup_text,
    time_text,
)

REASONS = "Why a side is faster or slower"
_NAMED = 2  # targets, that a title has room for
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
    environment.filters["cell"] = markdown_cell
    return environment.get_template("report.md.jinja").render(
        run=run,
        title=title(run, rows),
        machine=machine_text(run.environment),
        settings=settings_text(run),
        summary=summary(run, rows),
        against=against_text(run),
        sections=sections(rows, run.root, side_titles(run)),
    )


def title(run: Run, rows: Sequence[PairResult]) -> str:
    """What a report is of: its targets, or of many how many and of which folders, and the name of the run."""
    targets = [row.target for row in rows]
    if not targets:
        return f"Benchmark {run.run_id}"
    several = f"{len(targets)} targets of {few(target.partition(':')[0] for target in targets)}"
    return f"{', '.join(targets) if len(targets) <= _NAMED else several}: benchmark {run.run_id}"


def summary(run: Run, rows: Iterable[PairResult]) -> str:
    """One sentence: what became of the targets, and whether the run was cut short."""
    return counts_text(rows) + (", interrupted: further targets were not run." if run.interrupted else ".")


def sections(rows: Sequence[PairResult], root: Path = PROJECT_ROOT, titles: tuple[str, str] = (BASELINE, OPTIMIZED)) -> list[Section]:
    """The tables of a report, those without rows left out; `root` is where the rows' files are, `titles` what results call the sides."""
    makers = (
        _not_passed,
        _served,
        _ladders,
        _predicted,
        _gated,
        _certainty,
        _sides,
        _bounds,
        _kernels,
        _steps,
        _reasons,
        _counted,
        _moved,
        _device,
        _metrics,
        _proofs,
    )
    made = [_results(rows, titles), *(make(rows) for make in makers), _traced(rows, root)]
    return [section for section in made if section.rows]


def markdown_cell(text: str) -> str:
    """`text` on one line, with what Markdown would read as marks escaped; a tilde strikes nothing out alone, as in HEAD~1."""
    line = one_line(text)
    return _MARKDOWN_SYNTAX.sub(lambda mark: mark[0] if mark[0] == "~" and line.count("~") == 1 else f"\\{mark[0]}", line)


def _columns(titles: str) -> tuple[Column, ...]:
    """Columns from their titles, separated by commas; `>` stands before the title of a column of numbers."""
    return tuple(Column(title.removeprefix(">"), numeric=title.startswith(">")) for title in titles.split(", "))


def _results(rows: Sequence[PairResult], titles: tuple[str, str]) -> Section:
    target, *columns = _columns("target, >speedup [95 %], >share of ceiling, status, verdict, proofs")
    columns = [target, *(Column(title, numeric=True) for title in titles), *columns]
    lines = [line for row in rows for line in lines_of(row)]
    entries = [(line.label, line.baseline, line.side, line.speedup, line.share, line.status, line.verdict, line.proofs) for line in lines]
    return Section("Results", tuple(columns), entries, folded=False)


def _not_passed(rows: Sequence[PairResult]) -> Section:
    entries = [(row.target, str(row.status), row.reason) for row in rows if row.status is not Status.PASSED]
    entries.sort(key=lambda entry: entry[1] == Status.SKIPPED)  # a skip is no news; what failed stands first
    return Section("Not passed", _columns("target, status, reason"), entries, folded=False)


def _ladders(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, rung, over, >times as good [95 %], >time [95 %], share of ceiling [95 %]")
    entries = [
        (
            *(row.target + at_shape(shape), after, before, speedup_text(timing.rungs[after])),
            *(interval_text(timing.time_ns[after]), share_text(timing, after)),
        )
        for row in rows
        for shape, timing in row.timings.items()
        for before, after in climbed(timing)
    ]
    return Section("Ladders", columns, entries)


def _predicted(rows: Sequence[PairResult]) -> Section:
    """Every term of a prediction beside its measurement: a ratio may hit because two errors cancel."""
    columns = _columns("target, term, equation, >predicted, >measured, >measured over predicted, outcome")
    entries = []
    for row in rows:
        for shape, terms in row.predictions.items():
            for term in terms:
                outcome = term.why or ("missed" if term.missed else "" if term.measured is None else "hit")
                figures = [amount_of(value, term.unit) for value in (term.predicted, term.measured)]
                ratio = "" if term.ratio is None else significant(term.ratio)
                named = f"{term.subject} (guess)" if term.is_guess else term.subject
                entries.append((row.target + at_shape(shape), named, term.expression, *figures, ratio, outcome))
    return Section("Predicted and measured", columns, entries)


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
            ", ".join(f"{ratio.half_width_percent:.2f} %" for ratio in shown_ratios(timing).values()),
            str(timing.stop_reason).replace("_", " "),
            "; ".join(filter(None, [*notes_of(timing), slower_text(row, shape), *row.notes, compilation_text(row)])),
        )
        for row in rows
        for shape, timing in row.timings.items()
    ]
    return Section("How certain each number is", columns, entries)


def _sides(rows: Sequence[PairResult]) -> Section:
    columns = _columns(
        "target, side, >time [95 %], share of ceiling [95 %], >at held clock, largest error, set-up, >pays after calls, >peak memory, "
        ">energy of a step [95 %]"
    )
    entries = [
        (
            row.target + at_shape(shape),
            side,
            interval_text(time),
            share_text(timing, side),
            _held_share_text(timing, side),
            error_text(row.sides[side]),
            setup_text(row.sides[side]),
            break_even_text(row, timing, side),
            "" if (peak := row.sides[side].peak_memory_bytes) is None else bytes_text(peak),
            figure_interval_text(timing.joules[side], UNITS[ENERGY]) if side in timing.joules else "",
        )
        for row in rows
        for shape, timing in row.timings.items()
        for side, time in timing.time_ns.items()
    ]
    return Section("Each side", columns, entries)


def share_interval(timing: PairTiming, side: str) -> Interval:
    """The share of the ceiling that a side reaches, 1.0 being the ceiling, with the interval that its time gives it."""
    share, time = timing.shares[side].share, timing.time_ns[side]
    return Interval(estimate=share, low=share * time.estimate / time.high, high=share * time.estimate / time.low)


def share_text(timing: PairTiming, side: str) -> str:
    """That share in words: `88.1 % [87.9, 88.3] of dram`; empty where no ceiling was measured for it."""
    if side not in timing.shares:
        return ""
    percent = share_interval(timing, side)
    return f"{100 * percent.estimate:.1f} % [{100 * percent.low:.1f}, {100 * percent.high:.1f}] of {timing.shares[side].key}"


def _held_share_text(timing: PairTiming, side: str) -> str:
    share = timing.shares.get(side)
    return "" if share is None or share.at_held_clock is None else f"{100 * share.at_held_clock:.1f} %"


def _bounds(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, side, bound by, it rests on, arithmetic intensity, advice")
    entries = [
        (
            row.target + at_shape(found.shape),
            found.side,
            str(found.bottleneck),
            found.rests_on,
            found.intensity.words if found.intensity else "",
            "\n".join(f"({number}) {sentence}" for number, sentence in enumerate(found.advice, start=1)),
        )
        for row in rows
        for found in diagnoses(row)
    ]
    return Section("What bounds each side", columns, entries)


def _kernels(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, side, kernel, built for, >registers, >spilled, >shared memory, >launches, >occupancy")
    entries = [
        (
            row.target,
            side,
            kernel.name,
            f"sm_{kernel.architecture}",
            str(kernel.registers),
            bytes_text(kernel.spill_bytes),
            bytes_text(kernel.shared_bytes),
            "" if kernel.launches is None else str(kernel.launches),
            "" if kernel.occupancy_percent is None else f"{kernel.occupancy_percent:.0f} %",
        )
        for row in rows
        for side, result in row.sides.items()
        for kernel in result.kernels
    ]
    return Section("Kernels", columns, entries)


def _steps(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, side, traced by, >launches, >kernels, >copies, >host, >on the GPU, >gaps, >copies under kernels")
    entries = [
        (
            *(row.target, side, step.source, str(step.launches), str(step.kernels), str(step.copies)),
            *(time_text(step.host_ns), time_text(step.span_ns), f"{100 * gap_share(step):.0f} %"),
            "" if step.overlap_share is None else f"{100 * step.overlap_share:.0f} %",
        )
        for row in rows
        for side, result in row.sides.items()
        if result.profile and (step := result.profile.step)
    ]
    return Section("A step, traced", columns, entries)


_COUNTED = {**ncu.HEADLINES, "registers": ncu.REGISTERS}


def _counted(rows: Sequence[PairResult]) -> Section:
    columns = _columns(", ".join(["target, side, kernel", *(f">{title}" for title in _COUNTED), "stalled most by"]))
    entries = [
        (
            *(row.target, side, kernel),
            *(value_text(name, counters[name]) if name in counters else "" for name in _COUNTED.values()),
            stall_text(counters),
        )
        for row in rows
        for side, result in row.sides.items()
        if result.profile
        for kernel, counters in result.profile.kernels.items()
    ]
    return Section("Counters of a step", columns, entries)


def _reasons(rows: Sequence[PairResult]) -> Section:
    entries = [(row.target, reason.title, reason.words) for row in rows for reason in reasons(row)]
    return Section(REASONS, _columns("target, what, by the counters"), entries)


def _moved(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, side, counter, >baseline, >side's, >ratio")
    entries = [
        (
            row.target,
            each.side,
            each.counter,
            *(value_text(each.counter, value) for value in (each.baseline, each.value)),
            each.ratio_text,
        )
        for row in rows
        for each in moved(row)
    ]
    return Section("Counters that moved", columns, entries)


def _device(rows: Sequence[PairResult]) -> Section:
    columns = _columns("target, >SM clock MHz, >memory clock MHz, >power W, >temperature °C, held back by, >throttled, >energy")
    entries = [
        (
            row.target + at_shape(shape),
            *map(_spread, (seen.sm_clock_mhz, seen.memory_clock_mhz, seen.power_w, seen.temperature_c)),
            ", ".join(f"{reason} {100 * part:.0f} %" for reason, part in seen.reasons.items()),
            f"{100 * seen.throttled_share:.0f} %",
            "" if seen.energy is None else f"{seen.energy.joules:.0f} J in {seen.energy.seconds:.1f} s",
        )
        for row in rows
        for shape, timing in row.timings.items()
        if (seen := timing.telemetry).samples
    ]
    return Section("What the device did meanwhile", columns, entries)


def _spread(spread: Spread | None) -> str:
    """A median with the least and the most: `1980 (1755 to 1980)`."""
    return "" if spread is None else f"{spread.median:.0f} ({spread.minimum:.0f} to {spread.maximum:.0f})"


def _served(rows: Sequence[PairResult]) -> Section:
    entries = [tuple(vars(line).values()) for line in served.served_lines(rows)]
    return Section(served.TITLE, _columns(", ".join(served.COLUMNS.values())), entries, folded=False)


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


def _traced(rows: Sequence[PairResult], root: Path) -> Section:
    """When the roles of a side were busy, from a file that its chapter keeps: no figure of this run, so each says where it is from."""
    columns = _columns("target, busy, >of a block's time [95 %], >of a block's time and who multiplies waits for a stage [95 %], measured")
    entries: list[tuple[str, ...]] = []
    for row in rows:
        try:
            for trace in traces_of(row, root):
                entries.append((row.target, "", "", "", " ".join([f"Not in this run: {trace.where}.", *sentences(trace)])))
                entries += [(row.target, *line, f"{trace.date}, {trace.gpu}") for line in lines(trace)]
        except BenchmarkError as error:
            entries.append((row.target, "", "", "", str(error)))
    return Section("Roles that were busy together, traced", columns, entries)


def junit(run: Run, rows: Sequence[PairResult]) -> str:
    """JUnit XML, a test case a row: passed, skipped, or failed with its reason; a regression against expectations fails too.

    It is green only where the run's exit code is 0: a target that an interrupted run did not reach is an error, and an exit code that no
    row shows is a test case of its own. Times, in seconds, and speedups are properties.
    """
    suite = ET.Element("testsuite", name="benchmark", timestamp=run.started)
    if run.exit_code is not None:
        _properties(suite, {"exit_code": str(run.exit_code)})
    for row in rows:
        case = _case(suite, row.target, file=row.workload_file)
        _properties(case, _figures(row))
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
    for target in unreached(rows, run):
        ET.SubElement(_case(suite, target), "error", type="INTERRUPTED", message="the run ended before this target was done")
    if run.exit_code and not suite.findall(".//failure") and not suite.findall(".//error"):
        name, why = _CODES.get(run.exit_code, ("FAILED", "the run did not succeed"))
        why = exit_reason(run.exit_code, rows) or why
        ET.SubElement(_case(suite, "benchmark_cli:exit_code"), "error", type=name, message=f"exit code {run.exit_code}: {why}")
    for attribute, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f".//{kind}"))))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


_CODES: dict[int, tuple[str, str]] = {
    ExitCode.INCONCLUSIVE: ("INCONCLUSIVE", "a verdict is INCONCLUSIVE, which --fail-on fails"),
    ExitCode.NOTHING_MEASURED: ("NOTHING_MEASURED", "nothing was gated"),
    ExitCode.UNFIT: ("UNFIT", "a device throttled"),
    ExitCode.FULL_DISK: ("FULL_DISK", "a file found no room on the disk"),
    **dict.fromkeys((ExitCode.INTERRUPTED, ExitCode.TERMINATED, ExitCode.HUNG_UP), ("INTERRUPTED", "the run was interrupted")),
}


def _case(suite: ET.Element, target: str, **attributes: str) -> ET.Element:
    folder, _, name = target.partition(":")
    return ET.SubElement(suite, "testcase", {"classname": folder, "name": name, **attributes})


def _properties(element: ET.Element, values: Mapping[str, str]) -> None:
    if values:
        properties = ET.SubElement(element, "properties")
        for name, value in values.items():
            ET.SubElement(properties, "property", name=name, value=value)


def _figures(row: PairResult) -> dict[str, str]:
    """The times and speedups of a row, with their intervals: `optimized seconds`, `optimized speedup low`."""
    found: dict[str, str] = {}
    for shape, timing in row.timings.items():
        for side, time in timing.time_ns.items():
            found[f"{side} seconds{at_shape(shape)}"] = f"{time.estimate / 1e9:.6g}"
        for side, speedup in timing.speedups.items():
            ends = {"": speedup.estimate, " low": speedup.low, " high": speedup.high}
            found |= {f"{side} speedup{end}{at_shape(shape)}": f"{value:.6g}" for end, value in ends.items()}
        for side, figure in timing.figures.items():
            found[f"{side} {timing.goal} in {timing.unit}{at_shape(shape)}"] = f"{figure.estimate:.6g}"
    return found


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
