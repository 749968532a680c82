"""What became of the adversaries on a GPU: read out of a run, kept a file a GPU model, judged by their table, and told in the README."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from common.python.errors import BenchmarkError, Status
from common.python.machine.description import Machine
from common.python.project import PROJECT_ROOT
from common.python.report.rows import commit_name, commit_text
from common.python.report.run_folder import load
from common.python.results import SCHEMA_VERSION, Document, PairResult
from common.python.storage import document_text, read_document, write_whole
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


class AdversaryRun(Document):
    """One run of adversaries on the very GPU `uuid`; `cheats` are by name."""

    uuid: str
    driver: str
    torch: str
    date: str
    commit: str
    cheats: dict[str, Outcome]


class AdversaryResults(Document):
    """What became of the adversaries that can use a GPU on the model `device`: runs in their order, each cheat in its last one alone."""

    schema_version: Literal[1] = SCHEMA_VERSION
    device: str
    runs: tuple[AdversaryRun, ...]

    @property
    def run_of(self) -> dict[str, AdversaryRun]:
        """The run of each cheat, by its name."""
        return {name: run for run in self.runs for name in run.cheats}

    @property
    def cheats(self) -> dict[str, Outcome]:
        """What became of each cheat, by its name."""
        return {name: run.cheats[name] for name, run in self.run_of.items()}

    def joined(self, later: AdversaryResults) -> AdversaryResults:
        """These with what a later run on the model says instead of what they say of its cheats. Raises BenchmarkError for another model."""
        if later.device != self.device:
            raise BenchmarkError(f"found results of {self.device}; expected those of {later.device}, on which the adversaries ran")
        left = [{name: got for name, got in run.cheats.items() if name not in later.cheats} for run in self.runs]
        kept = [run.model_copy(update={"cheats": cheats}) for run, cheats in zip(self.runs, left, strict=True) if cheats]
        return self.model_copy(update={"runs": (*kept, *later.runs)})


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
    this = AdversaryRun(
        uuid=gpu.uuid,
        driver=gpu.driver,
        torch=machine.packages["torch"],
        date=run.started.partition("T")[0],
        commit=commit_name(machine.project),
        cheats={name: each.model_copy(update={"reason": each.reason.replace(place, "")}) for name, each in told.items()},
    )
    return AdversaryResults(device=gpu.name, runs=(this,))


def keep_results(path: Path, run_folder: Path, folder: Path = ADVERSARIES) -> None:
    """Put what became of the adversaries in a run into the file at `path`, which keeps what it says of others. Raises BenchmarkError."""
    results = results_of(run_folder, folder)
    if path.is_file():
        results = read_document(path, AdversaryResults).joined(results)
    write_whole(path, document_text(results))


def unmeasured(path: Path, folder: Path = ADVERSARIES) -> set[str]:
    """The cheats that can use a GPU of which the file at `path` says nothing, or whose file changed since. Raises BenchmarkError."""
    got = read_document(path, AdversaryResults).cheats if path.is_file() else {}
    return {name for cheat in _on_gpus(folder) if (name := cheat.name) not in got or got[name].sha256 != _sha256(name, folder)}


def _on_gpus(folder: Path) -> list[Cheat]:
    return [cheat for cheat in cheats(folder) if cheat.on in ("gpu", "both")]


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
    known = _on_gpus(folder)
    measured = [read_document(path, AdversaryResults) for path in sorted(folder.glob("results_*.json"))]
    sums = [_summed(known, results, folder) for results in measured] or [f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}."]
    table = rows(COLUMNS, (_cells(cheat, measured, folder) for cheat in known))
    return "\n".join([*sums, "", f"<details><summary>All {len(known)} of them</summary>", "", table, "", "</details>"])


def _summed(known: Sequence[Cheat], results: AdversaryResults, folder: Path) -> str:
    words = [_got(cheat, results.cheats, folder) for cheat in known]
    caught = sum(word == cheat.status for word, cheat in zip(words, known, strict=True))
    names = {cheat.name for cheat in known}
    runs = [(run, len(names & run.cheats.keys())) for run in results.runs]
    lines = [f"  - {count} of them with {_where(run)}" for run, count in runs if count]
    return "\n".join([f"- {results.device}: {caught} of {len(known)} got the status that they must.", *lines])


def _where(run: AdversaryRun) -> str:
    commit = f", commit {commit_text(run.commit)}" if run.commit else ""
    return f"driver {run.driver}, torch {run.torch}, {run.date}{commit}"


def _cells(cheat: Cheat, measured: Sequence[AdversaryResults], folder: Path) -> Iterator[str]:
    yield from (cheat.name, cheat.how, cheat.status)
    yield "; ".join(_got(cheat, results.cheats, folder) for results in measured) or NOT_MEASURED
    yield "; ".join(results.run_of[cheat.name].date for results in measured if cheat.name in results.cheats)
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
