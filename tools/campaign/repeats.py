"""Rows that ran once more after they were accepted, with nothing accepted anew, and what the gate said: `repeats_<gpu>.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from common.python.errors import BenchmarkError, Status
from common.python.gate.expectations import key_of_names
from common.python.results import SCHEMA_VERSION, Document, Interval, Origin, PairResult, Verdict, VerdictKind
from common.python.storage import read_document

FOLDER = Path("tools/campaign")
_COMMAND = "; repeat: "  # behind it stands how to repeat a failure, with paths of the machine


class Repeat(Document):
    """One timing of a row that ran again, or the row itself where it has no timing.

    `status` and `kind` are the row's and the verdict's; `kind` is None of a row that got no verdict. `said` is the verdict's sentence, or
    why there is none. `figure` is what the verdict rests on, its change `percent` and the band that counts as none; "" and None without.
    """

    target: str
    shape: str
    status: Status
    kind: VerdictKind | None
    said: str
    figure: str = ""
    percent: Interval | None = None
    band_percent: float | None = None
    origin: Origin

    @property
    def run(self) -> tuple[str, str, str]:
        """What no other has: its timing and when its run began."""
        return self.target, self.shape, self.origin.date


class Repeats(Document):
    """The file of one GPU model, with the number of GPUs where those are several."""

    schema_version: Literal[1] = SCHEMA_VERSION
    gpu: str
    rows: tuple[Repeat, ...] = ()


def repeats_path(root: Path, key: str) -> Path:
    """The file of a key, as `gpu_key` makes it."""
    return root / FOLDER / f"repeats_{key}.json"


def read_repeats(root: Path) -> list[Repeats]:
    """Every file below `root`. Raises BenchmarkError, naming the one that is none or has another model's name."""
    found = []
    for path in sorted((root / FOLDER).glob("repeats_*.json")):
        found.append(read_document(path, Repeats))
        if path != (expected := repeats_path(root, found[-1].gpu)):
            raise BenchmarkError(f"{path}: found repeats of {found[-1].gpu!r}; expected the file's name to be {expected.name}")
    return found


def repeats_of(row: PairResult) -> tuple[str, list[Repeat]]:
    """The key of a row's GPUs, and what became of its timings. Raises BenchmarkError without a GPU, a date or something expected."""
    if not row.origin or not row.origin.gpus:
        raise BenchmarkError("found no GPU that it ran on; expected a run on GPUs")
    if not row.origin.date:
        raise BenchmarkError("found no date; expected a run that says when it began")
    names = [gpu.rpartition(" ")[0] for gpu in row.origin.gpus]
    if accepted := [shape for shape, verdict in row.verdicts.items() if verdict.accepted]:
        raise BenchmarkError(f"found {accepted[0]} accepted by this run; expected a run that accepts nothing")
    if row.status is not Status.PASSED:
        own = [Repeat(target=row.target, shape="", status=row.status, kind=None, said=row.reason.partition(_COMMAND)[0], origin=row.origin)]
    else:
        own = [_repeat(row, row.origin, shape, verdict) for shape, verdict in row.verdicts.items() if verdict.kind is not VerdictKind.NEW]
    if not own:
        raise BenchmarkError("found nothing that is expected of it; expected an accepted row")
    return key_of_names(names), own


def _repeat(row: PairResult, origin: Origin, shape: str, verdict: Verdict) -> Repeat:
    own = Repeat(target=row.target, shape=shape, status=row.status, kind=verdict.kind, said=verdict.sentence, origin=origin)
    if not verdict.changes:
        return own
    figure, change = next(iter(verdict.changes.items()))
    return own.model_copy(update={"figure": figure, "percent": change.percent, "band_percent": change.band_percent})
