"""How far a run drifted from what was accepted on its GPU model: every gated figure, time and further figure, as a table and one JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.gate.expectations import Expectation, expectations_path, gpu_key, ratio_of, read_expectations
from common.python.gate.noise_floor import class_of_units
from common.python.gate.outcome import standing
from common.python.gate.statistics import PAIR, Difference, Mean, gated_logs, median_ns, rungs_timed
from common.python.gate.verdicts import changes_of, name_of, verdict_of
from common.python.machine.description import Gpu
from common.python.report.run_folder import folder_of, load
from common.python.report.terminal import console_for
from common.python.results import OPTIMIZED, Interval, PairResult, PairTiming, Run, StopReason, Verdict, VerdictKind
from common.python.storage import write_whole
from common.python.wording import at_shape, interval_text, percent_text, significant, speedup_text

REPORT_FILE = "expectations_drift.json"
_GAP = 2


@dataclass(frozen=True)
class Drift:
    """One figure against the accepted one. `percent` is what it changed by, with its 99 % interval where both have units."""

    target: str
    shape: str
    figure: str
    accepted: str
    found: str
    percent: dict[str, float]
    verdict: str = ""

    @property
    def change(self) -> str:
        """The change in words."""
        if "low" in self.percent:
            return percent_text(Interval(**self.percent))
        return f"{self.percent['estimate']:+.1f} %" if self.percent else ""


@dataclass(frozen=True)
class Accepted:
    """A timing of the run, and what is expected of it by which file."""

    row: PairResult
    shape: str
    timing: PairTiming
    expectation: Expectation
    file: Path


def gpus_of(run: Run) -> list[Gpu]:
    """The GPUs that the run had."""
    return [Gpu.model_validate(gpu) for gpu in run.environment.get("gpus", ())]


def accepted_of(run: Run, rows: Sequence[PairResult], root: Path) -> tuple[list[Accepted], dict[str, str]]:
    """The timings that something is expected of under `root`, and of each other one why it is not compared. Raises BenchmarkError."""
    gpus = gpus_of(run)
    found, left_out = [], {}
    for row in rows:
        pair = row.target.partition(":")[2]
        folder = (root / row.workload_file).parent
        files = [expectations_path(folder, gpu_key(gpus[:count])) for count in range(1, len(gpus) + 1)]
        known = {file: read_expectations(file).pairs.get(pair, {}) for file in files}
        if not row.timings:
            left_out[row.target] = f"{row.status}, not timed"
        for shape, timing in row.timings.items():
            file = next((file for file, shapes in known.items() if shape in shapes), None)
            if why_not := _why_not(run, timing):
                left_out[row.target + at_shape(shape)] = why_not
            elif file is None:
                left_out[row.target + at_shape(shape)] = f"nothing is expected of it on this GPU model in {folder}"
            elif differing := known[file][shape].differs_from({name: vars(timing)[name] for name in ("shape", "goal", "clock", "cache")}):
                left_out[row.target + at_shape(shape)] = differing
            else:
                found.append(Accepted(row, shape, timing, known[file][shape], file))
    return found, left_out


def _why_not(run: Run, timing: PairTiming) -> str:
    reasons = {
        "timed on a CPU": timing.device == "cpu",
        f"timed in mode {timing.mode}; burst is what is accepted": timing.mode != "burst",
        "the device throttled": timing.stop_reason is StopReason.THROTTLED,
        "its baseline is another revision's": bool(run.settings.get("against")),
        "it has no gated figure: a half, or no figure for its goal": not gated_logs(timing.units, timing.goal),
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def judged(run: Run, found: Sequence[Accepted]) -> dict[str, PairResult]:
    """The rows by target, with verdicts on the ratios that are gated; red only what stands among all of them."""
    verdicts: dict[str, dict[str, Verdict]] = {}
    for each in found:
        verdicts.setdefault(each.row.target, {})[each.shape] = _verdict(run, each)
    rows = {each.row.target: each.row.model_copy(update={"verdicts": verdicts[each.row.target]}) for each in found}
    return {row.target: row for row in standing([*rows.values()])}


def _verdict(run: Run, each: Accepted) -> Verdict:
    timing = each.timing
    expected = {OPTIMIZED: {PAIR: Mean.of(each.expectation.logs)}, **each.expectation.means_of(rungs_timed(timing))}
    band = max(run.settings["gate"], run.noise_percent.get(class_of_units(timing.clock, timing.units), 0.0))
    return verdict_of(timing, changes_of(timing.units, timing.goal, expected, band), expected, promotable=False)


def drifts_of(each: Accepted, verdict: Verdict) -> Iterator[Drift]:
    """The gated ratios, then the time of each side, then what else was accepted with it."""
    target, shape, timing, expectation = each.row.target, each.shape, each.timing, each.expectation
    (_, gated), *_ = verdict.changes.items()
    for side in (OPTIMIZED, *rungs_timed(timing)):
        name, new = name_of(side, timing.goal), ratio_of(timing, side)
        if new and name in verdict.changes:
            old = expectation.ratio if side == OPTIMIZED else expectation.rungs[side].over_baseline
            change = verdict.changes[name]
            kind = verdict.kind if change.kind is VerdictKind.REGRESSED else change.kind  # red only what stands
            yield Drift(target, shape, name, speedup_text(old), speedup_text(new), change.percent.model_dump(), str(kind))
    for side, accepted in expectation.sides.items():
        if side in timing.time_ns:
            logs = [math.log(median_ns(unit, side)) for unit in timing.units]
            change = Difference.between(Mean.of(logs), Mean.of(accepted.logs_ns)).change(gated.band_percent)
            words = interval_text(accepted.time_ns), interval_text(timing.time_ns[side])
            yield Drift(target, shape, f"time of {side}", *words, change.percent.model_dump())
    for side, metrics in expectation.metrics.items():
        for metric, then in metrics.items():
            now = each.row.metrics.get(side, {}).get(metric)
            if now is not None:
                percent = {"estimate": 100 * (now.value / then.value - 1)} if then.value else {}
                words = f"{significant(then.value)} {then.unit}", f"{significant(now.value)} {now.unit}"
                yield Drift(target, shape, f"{metric} of {side}", *words, percent)


def report(run: Run, rows: Sequence[PairResult], root: Path) -> tuple[dict[str, Any], list[Drift]]:
    """The JSON, and the drifts that a table shows. Raises BenchmarkError."""
    found, left_out = accepted_of(run, rows, root)
    verdicts = judged(run, found)
    drifts: list[Drift] = []
    timings = []
    for each in found:
        verdict = verdicts[each.row.target].verdicts[each.shape]
        drifts += drifts_of(each, verdict)
        seen = each.timing.telemetry
        timings.append(
            {
                "target": each.row.target,
                "shape": each.shape,
                "expectations": str(each.file),
                "provenance": each.expectation.provenance.model_dump(mode="json"),
                "verdict": verdict.model_dump(mode="json"),
                "sm_clock_mhz": seen.sm_clock_mhz.median if seen.sm_clock_mhz else None,
                "throttled_share": seen.throttled_share,
            }
        )
    told = {"run_id": run.run_id, "timings": timings, "drifts": [asdict(drift) for drift in drifts], "not_compared": left_out}
    return told, drifts


_TITLES = ("target", "figure", "accepted", "found", "change [99 %]", "verdict")


def print_drifts(drifts: Sequence[Drift], left_out: dict[str, str], console: Console) -> None:
    """The table, and a line for each timing that is not in it. Where it is narrow, intervals are left to the JSON: no number is cut."""
    lines: list[tuple[str, ...]] = [
        (each.target + at_shape(each.shape), each.figure, each.accepted, each.found, each.change, each.verdict) for each in drifts
    ]
    if lines and sum(max(cell_len(line[column]) for line in (_TITLES, *lines)) + _GAP for column in range(len(_TITLES))) > console.width:
        lines = [(*line[:2], *(text.partition(" [")[0] for text in line[2:5]), line[5]) for line in lines]
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for title in _TITLES:
        table.add_column(
            title.partition(" [")[0] if lines and "[" not in lines[0][4] else title, no_wrap=title != "target", overflow="fold"
        )
    for line in lines:
        table.add_row(*map(Text, line))
    if lines:
        console.print(table)
    for target, why in left_out.items():
        console.print(Text(f"{target}: not compared: {why}"), soft_wrap=True)


def main(arguments: list[str] | None = None) -> int:
    """Write the drift of a run as JSON into its folder, and print the table."""
    parser = Arguments(description=__doc__)
    parser.add_argument("run", type=Path, help="artifacts/<run>, or its run.json")
    parser.add_argument("--root", type=Path, help="the folder that holds the targets and their expectations; default: the run's own")
    chosen = parser.parse_args(arguments)
    try:
        run, rows = load(chosen.run)
        root = chosen.root or run.root
        if not root.is_dir():
            raise BenchmarkError(f"{root}: no such folder; expected the targets and their expectations in it, or another --root")
        told, drifts = report(run, rows, root)
        path = folder_of(chosen.run) / REPORT_FILE
        write_whole(path, json.dumps(told, indent=2) + "\n")
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print_drifts(drifts, told["not_compared"], console_for(json_output=False))
    print(path)
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    exit_with(main)
