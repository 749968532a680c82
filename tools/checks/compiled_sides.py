"""What became of the compiled sides of tests/compiled: read out of a run, kept a file a device, and told in their README.

`python tools/checks/compiled_sides.py RUN` writes `results_cpu.json`, or `results_h200.json` of a run on that GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode, Status
from common.python.gate.expectations import key_of_names
from common.python.gate.noise_floor import class_of_units
from common.python.gate.statistics import NO_CHANGE, PAIR
from common.python.gate.verdicts import changes_of
from common.python.machine.description import Machine
from common.python.pairs.goals import TIME
from common.python.project import PROJECT_ROOT
from common.python.report.rows import commit_name, commit_text
from common.python.report.run_folder import load
from common.python.results import OPTIMIZED, SCHEMA_VERSION, Document, Interval, PairResult, PairTiming, Run, VerdictKind
from common.python.settings import Settings
from common.python.storage import document_text, read_document, write_whole
from common.python.wording import speedup_text
from tools.checks.written_tables import NOT_MEASURED, rows

FOLDER = Path("tests", "compiled")
CONTROL = "ch14:mlp_again"
HEADS = ("row", "status", "speedup [95 %]", "against no change", "first compilation, s", "beside it, s")


class CompiledRow(Document):
    """One row: `speedup` is None where it was not timed, `verdict` what the gate says of it against no change, None on a CPU."""

    status: Status
    reason: str
    speedup: Interval | None
    verdict: VerdictKind | None
    seconds: float
    first_compilation_s: float | None
    beyond_compilation_s: float | None


class CompiledResults(Document):
    """One run of all pairs on the GPU or CPU `device`; rows are by target. No change within `band_percent` counts.

    `note` is what whoever kept it says of the machine, "" of one where nothing else ran.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    device: str
    driver: str
    torch: str
    date: str
    commit: str
    band_percent: float
    note: str = ""
    rows: dict[str, CompiledRow]


def results_of(run_folder: Path) -> tuple[str, CompiledResults]:
    """The key of the device that a run was made on, and what became of its rows. Raises BenchmarkError."""
    run, found = load(run_folder)
    machine = Machine.model_validate(run.environment)
    gpus = [] if run.settings.get("device") == "cpu" else machine.gpus[:1]
    band = Settings.model_validate(run.settings).gate
    key = key_of_names([gpu.name for gpu in gpus]) if gpus else "cpu"
    return key, CompiledResults(
        device=gpus[0].name if gpus else f"{machine.cpu}, {machine.cores} cores",
        driver=gpus[0].driver if gpus else "",
        torch=machine.packages["torch"],
        date=run.started.partition("T")[0],
        commit=commit_name(machine.project),
        band_percent=band,
        rows={row.target: _row(row, run, band, f"{run_folder.parent}/") for row in found},
    )


def _row(row: PairResult, run: Run, band: float, place: str) -> CompiledRow:
    timing = next(iter(row.timings.values()), None)
    return CompiledRow(
        status=row.status,
        reason=row.reason.replace(place, ""),
        speedup=timing.speedups.get(OPTIMIZED) if timing else None,
        verdict=_verdict(timing, run, band) if timing and timing.device == "cuda" else None,
        seconds=row.seconds,
        first_compilation_s=row.first_compilation_s,
        beyond_compilation_s=row.beyond_compilation_s,
    )


def _verdict(timing: PairTiming, run: Run, band: float) -> VerdictKind | None:
    """What the gate says of a timing if nothing should have changed, with the noise floor of its class where that is larger."""
    floor = run.noise_percent.get(str(class_of_units(timing.clock, timing.units)), 0.0)
    changes = changes_of(timing.units, TIME, {OPTIMIZED: {PAIR: NO_CHANGE}}, max(band, floor))
    return changes[OPTIMIZED].kind if changes else None


def text(folder: Path) -> str:
    """What the README says: a table a device, and that no GPU was measured where there is no file of one."""
    measured = {path.stem.partition("_")[2]: read_document(path, CompiledResults) for path in sorted(folder.glob("results_*.json"))}
    parts = [f"{_where(results)}:\n\n{rows(HEADS, _lines(results))}" for results in measured.values()]
    missing = [name for name, there in (("CPU", "cpu" in measured), ("GPU", bool(measured.keys() - {"cpu"}))) if not there]
    return "\n\n".join([*parts, *(f"On a {name}: {NOT_MEASURED}." for name in missing)])


def _lines(results: CompiledResults) -> Iterator[tuple[str, ...]]:
    for target, row in results.rows.items():
        speedup = speedup_text(row.speedup) if row.speedup else "not timed" if row.status is Status.PASSED else ""
        seconds = ("" if each is None else f"{each:.0f}" for each in (row.first_compilation_s, row.beyond_compilation_s))
        yield (f"`{target.partition(':')[2]}`", str(row.status), speedup, str(row.verdict or ""), *seconds)


def _where(results: CompiledResults) -> str:
    passed, skipped = (sum(row.status is status for row in results.rows.values()) for status in (Status.PASSED, Status.SKIPPED))
    driver = f", driver {results.driver}" if results.driver else ""
    commit = f", commit {commit_text(results.commit)}" if results.commit else ""
    control = results.rows.get(CONTROL)
    told = f"; eager against eager {control.verdict}, with a band of {results.band_percent:.2g} %" if control and control.verdict else ""
    note = f" ({results.note})" if results.note else ""
    where = f"{results.device}{driver}, torch {results.torch}, {results.date}{commit}{note}"
    left_out = f", {skipped} skipped for what it needs" if skipped else ""
    return f"{where}: {passed} of {len(results.rows)} rows passed{left_out}{told}"


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Keep a run beside the pairs, and name the file; USAGE if it is no run of them."""
    parser = Arguments(description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run with --root tests/compiled")
    parser.add_argument("--note", default="", help="what the README should say of the machine beside its name")
    given = parser.parse_args(arguments)
    try:
        key, results = results_of(given.run)
        if CONTROL not in results.rows:
            raise BenchmarkError(f"{given.run}: found no row {CONTROL}; expected a run with --root {FOLDER} of all targets")
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    path = root / FOLDER / f"results_{key}.json"
    write_whole(path, document_text(results.model_copy(update={"note": given.note})))
    print(f"{path.relative_to(root)}: {len(results.rows)} rows")
    return ExitCode.GOOD


if __name__ == "__main__":
    exit_with(main)
