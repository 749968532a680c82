"""Where and of which files a row was made, and whether a run may go on here: on the same commit and on GPUs of the same model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.python.errors import BenchmarkError
from common.python.machine.ceilings import MachineCeilings
from common.python.machine.description import Machine
from common.python.pairs.changed import with_named
from common.python.pairs.revisions import Past
from common.python.pairs.sources import cubins_of, digest_of
from common.python.project import PROJECT_ROOT
from common.python.report.rows import changed_sources, few
from common.python.results import Origin, PairResult
from common.python.session.planning import Plan

_CHECKOUTS = {"root": "the pairs", "project": "the harness"}


def origin_of(plan: Plan, machine: Machine, ceilings: Mapping[str, MachineCeilings], started: str) -> Origin:
    """Where the row of `plan` is made, in a run that began at `started`."""
    source, kept = machine.root or machine.project, ceilings.get(plan.device)
    return Origin(
        gpus=tuple(f"{gpu.name} {gpu.uuid}" for gpu in plan.gpus) if plan.device == "cuda" else (),
        commit=source.commit if source else "",
        dirty=source.dirty if source else False,
        ceilings=kept.measured if kept else "",
        date=started,
        driver=plan.gpus[0].driver if plan.device == "cuda" and plan.gpus else "",
        torch=machine.packages.get("torch", ""),
    )


def sources_of(plan: Plan, root: Path, past: Past | None) -> dict[str, str]:
    """The SHA-256 of each file that the row of `plan` is made of, by its path from `root`; one of `past`, that of --against, says so."""
    sides = [plan.file(side) for side in plan.sides]
    files = [plan.selection.pair.workload, *sides, *(cubin for side in sides for cubin in cubins_of(side))]
    of_past = [file for file in files if past and file.is_relative_to(past.then)]
    found = with_named([file for file in files if file not in of_past], root) | (with_named(of_past, past.root) if past else frozenset())
    then = [past.root, past.then] if past else []
    places = dict.fromkeys(then, "--against: ") | {root.resolve(): "", PROJECT_ROOT.resolve(): ""}

    def named(path: Path) -> str:
        place = next((folder for folder in places if path.is_relative_to(folder)), None)
        return f"{places[place]}{path.relative_to(place)}" if place else os.path.relpath(path, root.resolve())

    return {named(path): digest_of(path) for path in sorted(found)}


def edited_since(row: PairResult, sources: Mapping[str, str]) -> str:
    """Which files of a kept row are not what they were, in words; "" where all are, and of a row from before they were told."""
    changed = changed_sources(row.sources, sources) if row.sources else []
    return f"{few(changed)} changed since" if changed else ""


def require_same_place(path: Path, saved: Mapping[str, Any], machine: Machine) -> tuple[str, ...]:
    """What to say of a run that goes on here, `saved` being the machine that its run.json at `path` describes.

    Raises BenchmarkError for another GPU model and for another commit: their rows would stand side by side as if they were alike.
    """
    then = sorted(gpu["name"] for gpu in saved.get("gpus", ()))
    now = sorted(gpu.name for gpu in machine.gpus)
    if set(then) != set(now):
        raise BenchmarkError(f"--resume on {_listed(now)}; expected {_listed(then)}, which made the rows of {path}")
    for key, what in _CHECKOUTS.items():
        before, source = saved.get(key), machine.root if key == "root" else machine.project
        if before and source and before["commit"] != source.commit:
            found = f"--resume with {what} at commit {source.commit[:10]}"
            raise BenchmarkError(f"{found}; expected {before['commit'][:10]}, which made the rows of {path}")
    others = {gpu.uuid for gpu in machine.gpus} - {gpu.get("uuid", "") for gpu in saved.get("gpus", ())}
    return (f"--resume on another {' and another '.join(sorted(set(now)))} than made the rows that are done",) if others else ()


def require_same_baseline(path: Path, saved: str, commit: str) -> None:
    """Raise BenchmarkError if --against means another commit than in the run.json at `path`, as a branch does that went on."""
    if saved and saved != commit:
        raise BenchmarkError(f"--resume against commit {commit[:10]}; expected {saved[:10]}, which the rows of {path} were against")


def of_other_gpus(rows: Sequence[PairResult]) -> list[PairResult]:
    """`rows`, with a note on each that was made on another GPU than the last of them."""
    known = [row.origin.gpus for row in rows if row.origin and row.origin.gpus]
    return [
        row.model_copy(update={"notes": (*row.notes, f"made on {', '.join(row.origin.gpus)}")})
        if row.origin and row.origin.gpus and row.origin.gpus != known[-1] and not any(note.startswith("made on ") for note in row.notes)
        else row
        for row in rows
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(set(names))) or "a machine without a GPU"
