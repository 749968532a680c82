"""What became of the adversaries on a GPU: read out of a run, kept a file a GPU model, judged by their table, and told in the README."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from common.python.errors import Status
from common.python.machine.description import Machine
from common.python.project import PROJECT_ROOT
from common.python.report.rows import commit_name, commit_text
from common.python.report.run_folder import load
from common.python.results import SCHEMA_VERSION, Document, PairResult
from common.python.storage import read_document
from tools.checks.written_tables import NOT_MEASURED, rows

ADVERSARIES = PROJECT_ROOT / "tests" / "adversaries"
FOLDER = "cheats"
COLUMNS = ("cheat", "how it lies", "status it must get", "got", "date", "GPU")

_NS = {"us": 1e3, "ms": 1e6}
_BYTES = {"MiB": float(1 << 20)}


@dataclass(frozen=True)
class Cheat:
    """A row of table.md: the status that the cheat must get, what its reason must say, where it runs, and how it lies."""

    name: str
    status: str
    says: str
    on: str
    how: str


class Outcome(Document):
    """What one cheat got: its status and reason, each side's median ns and peak bytes where measured, and the sha256 of its file then."""

    status: Status
    reason: str
    time_ns: dict[str, float]
    sha256: str
    peak_bytes: dict[str, float] = {}


class AdversaryResults(Document):
    """One run of all adversaries that can use a GPU, on the model `device`, the very GPU `uuid`; `cheats` are by name."""

    schema_version: Literal[1] = SCHEMA_VERSION
    device: str
    uuid: str
    driver: str
    torch: str
    date: str
    commit: str
    cheats: dict[str, Outcome]


def cells_of(title: str, folder: Path = ADVERSARIES) -> list[list[str]]:
    """The cells of the rows of the table in table.md under the heading `title`."""
    section = (folder / "table.md").read_text(encoding="utf-8").split(f"# {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def cheats(folder: Path = ADVERSARIES) -> list[Cheat]:
    """The cheats that must be caught, and the controls."""
    return [Cheat(*cells) for cells in cells_of("The table", folder)]


def outcome_of(row: PairResult, folder: Path = ADVERSARIES) -> Outcome:
    """What the cheat of a row got."""
    times = {side: time.estimate for timing in row.timings.values() for side, time in timing.time_ns.items()}
    peaks = {side: float(result.peak_memory_bytes) for side, result in row.sides.items() if result.peak_memory_bytes}
    return Outcome(status=row.status, reason=row.reason, time_ns=times, sha256=_sha256(_name(row), folder), peak_bytes=peaks)


def results_of(run_folder: Path, folder: Path = ADVERSARIES) -> AdversaryResults:
    """What became of the adversaries in the run whose documents lie in `run_folder`, without where that was. Raises BenchmarkError."""
    run, found = load(run_folder)
    machine = Machine.model_validate(run.environment)
    gpu = machine.gpus[0]
    told = {_name(row): outcome_of(row, folder) for row in found}
    place = f"{run_folder.parent}/"
    return AdversaryResults(
        device=gpu.name,
        uuid=gpu.uuid,
        driver=gpu.driver,
        torch=machine.packages["torch"],
        date=run.started.partition("T")[0],
        commit=commit_name(machine.project),
        cheats={name: each.model_copy(update={"reason": each.reason.replace(place, "")}) for name, each in told.items()},
    )


def complaint(cheat: Cheat, got: Outcome) -> str:
    """What `got` lacks of what the table asks for, in one sentence; "" if nothing."""
    if got.status != cheat.status:
        return f"found {': '.join(filter(None, (got.status, got.reason)))}; expected {cheat.status}"
    if got.status is not Status.PASSED:
        return "" if cheat.says in got.reason else f"found the reason {got.reason}; expected {cheat.says} in it"
    if cheat.says == "-":
        return ""
    side, relation, limit, unit = cheat.says.split()
    figures, size = (got.peak_bytes, _BYTES[unit]) if unit in _BYTES else (got.time_ns, _NS[unit])
    found, bound = figures[side], float(limit) * size
    holds = found > bound if relation == ">" else found < bound
    return "" if holds else f"found {side} at {found / size:.3g} {unit}; expected {relation} {limit} {unit}"


def text(folder: Path = ADVERSARIES) -> str:
    """What the README says of the adversaries that can use a GPU: a line a GPU model that was measured, and a row a cheat."""
    known = [cheat for cheat in cheats(folder) if cheat.on in ("gpu", "both")]
    measured = [read_document(path, AdversaryResults) for path in sorted(folder.glob("results_*.json"))]
    sums = [_summed(known, results, folder) for results in measured] or [f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}."]
    table = rows(COLUMNS, (_cells(cheat, measured, folder) for cheat in known))
    return "\n".join([*sums, "", f"<details><summary>All {len(known)} of them</summary>", "", table, "", "</details>"])


def _summed(known: Sequence[Cheat], results: AdversaryResults, folder: Path) -> str:
    words = [_got(cheat, results.cheats, folder) for cheat in known]
    caught = sum(word == cheat.status for word, cheat in zip(words, known, strict=True))
    commit = f", commit {commit_text(results.commit)}" if results.commit else ""
    where = f"{results.device}, driver {results.driver}, torch {results.torch}, {results.date}{commit}"
    return f"- {where}: {caught} of {len(known)} got the status that they must."


def _cells(cheat: Cheat, measured: Sequence[AdversaryResults], folder: Path) -> Iterator[str]:
    yield from (cheat.name, cheat.how, cheat.status)
    yield "; ".join(_got(cheat, results.cheats, folder) for results in measured) or NOT_MEASURED
    yield "; ".join(results.date for results in measured if cheat.name in results.cheats)
    yield "; ".join(results.device.removeprefix("NVIDIA ") for results in measured if cheat.name in results.cheats)


def _got(cheat: Cheat, outcomes: Mapping[str, Outcome], folder: Path) -> str:
    """The status where it is what the table asks for; else what is wrong with it, or that this very cheat was not measured."""
    if cheat.name not in outcomes:
        return NOT_MEASURED
    got = outcomes[cheat.name]
    if got.sha256 != _sha256(cheat.name, folder):
        return "not measured since it changed"
    return complaint(cheat, got) or str(got.status)


def _name(row: PairResult) -> str:
    return row.target.partition(":")[2]


def _sha256(name: str, folder: Path) -> str:
    (path,) = (folder / FOLDER).glob(f"optimized_{name}.*")
    return hashlib.sha256(path.read_bytes()).hexdigest()
