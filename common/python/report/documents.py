"""What `--json` prints: a document a command, with its exit code and the machine, so that a script needs no second command."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from common.python.errors import ExitCode
from common.python.gate.comparison import Comparison
from common.python.machine.description import Machine
from common.python.machine.doctor import Finding
from common.python.report.rows import shown_ratios
from common.python.report.ungated import exit_reason
from common.python.results import OPTIMIZED, SCHEMA_VERSION, Document, Interval, Metrics, PairResult, Run, Verdict
from common.python.session.planning import Plan
from common.python.storage import document_text


class Outcome(Metrics):
    """What `run --json` and `verify --json` print: the rows, how the run ended, on which machine, and the folder of its artifacts.

    `exit_reason` says why the exit code is 5; it is "" of another, which the rows explain.
    """

    exit_code: int
    exit_reason: str = ""
    interrupted: bool
    artifacts: str
    machine: dict[str, Any]


class PlannedRow(Document):
    """What a run would do with one target: which sides, by file, where, and at which shapes; `skip` says why it would not run."""

    target: str
    sides: dict[str, str]
    device: Literal["cuda", "cpu"]
    clock: Literal["device", "launch", "host"]
    ranks: int
    timed: dict[str, dict[str, int | float | bool | str]]
    skip: str


class DryRun(Document):
    """What `--dry-run --json` prints; nothing was built, run or written."""

    schema_version: Literal[1] = SCHEMA_VERSION
    rows: tuple[PlannedRow, ...]
    notes: tuple[str, ...]
    exit_code: int
    machine: dict[str, Any]


class ComparedRun(Document):
    """One of two runs that are compared: its folder, its name, and the machine that it ran on."""

    folder: str
    run_id: str
    machine: dict[str, Any]


class ComparedRow(Document):
    """One timing that both runs have: how many times better than the baseline in each, None of a half, and the verdict on B."""

    target: str
    shape: str
    goal: str
    before: Interval | None
    after: Interval | None
    verdict: Verdict


class ComparedRuns(Document):
    """What `compare --json` prints; `missing` has a sentence for each row and shape that only one run has, or passed in one only."""

    schema_version: Literal[1] = SCHEMA_VERSION
    a: ComparedRun
    b: ComparedRun
    gate_percent: float
    rows: tuple[ComparedRow, ...]
    missing: tuple[str, ...]
    exit_code: int


class Examination(Document):
    """What `doctor --json` prints: all that was looked at on this machine."""

    schema_version: Literal[1] = SCHEMA_VERSION
    findings: tuple[Finding, ...]
    exit_code: int
    machine: dict[str, Any]


PRINTED: dict[str, type[Document]] = {"outcome": Outcome, "dry_run": DryRun, "comparison": ComparedRuns, "examination": Examination}


def print_document(document: Document) -> None:
    """`document` on stdout, as `--json` promises, and nothing else."""
    sys.stdout.write(document_text(document))


def outcome_of(run: Run, rows: Iterable[PairResult], folder: Path, code: ExitCode) -> Outcome:
    """The document of a run that has ended with `code` and left `folder`."""
    rows = tuple(rows)
    return Outcome(
        run_id=run.run_id,
        rows=rows,
        exit_code=int(code),
        exit_reason=exit_reason(code, rows),
        interrupted=run.interrupted,
        artifacts=str(folder),
        machine=run.environment,
    )


def dry_run_of(plans: Iterable[Plan], notes: Iterable[str], machine: Machine) -> DryRun:
    """The document of a run that was only planned."""
    rows = tuple(_planned(plan) for plan in plans)
    return DryRun(rows=rows, notes=tuple(notes), exit_code=int(ExitCode.GOOD), machine=machine.model_dump(mode="json"))


def _planned(plan: Plan) -> PlannedRow:
    return PlannedRow(
        target=plan.target,
        sides={side: str(plan.file(side)) for side in plan.sides},
        device=plan.device,
        clock=plan.clock,
        ranks=plan.ranks,
        timed={name: dict(shape) for name, shape in plan.timed.items()},
        skip=plan.skip,
    )


def compared_runs(comparison: Comparison, rows: Iterable[PairResult], folders: tuple[Path, Path], code: ExitCode) -> ComparedRuns:
    """The document of `comparison`, whose `rows` have the verdicts; `folders` are those of its two runs."""
    first, second = (
        ComparedRun(folder=str(folder), run_id=run.run_id, machine=run.environment)
        for folder, run in zip(folders, (comparison.run_a, comparison.run_b), strict=True)
    )
    return ComparedRuns(
        a=first,
        b=second,
        gate_percent=comparison.gate_percent,
        rows=tuple(each for row in rows for each in _compared(row, comparison.rows_a)),
        missing=tuple(comparison.missing()),
        exit_code=int(code),
    )


def _compared(row: PairResult, before: Mapping[str, PairResult]) -> Iterable[ComparedRow]:
    for shape, verdict in row.verdicts.items():
        timings = before[row.target].timings[shape], row.timings[shape]
        ratios = [shown_ratios(timing).get(OPTIMIZED) for timing in timings]
        yield ComparedRow(target=row.target, shape=shape, goal=timings[1].goal, before=ratios[0], after=ratios[1], verdict=verdict)


def examination_of(findings: Iterable[Finding], machine: Machine, code: ExitCode) -> Examination:
    """The document of what `doctor` found on `machine`."""
    return Examination(findings=tuple(findings), exit_code=int(code), machine=machine.model_dump(mode="json"))
