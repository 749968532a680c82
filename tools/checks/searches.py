"""What a chapter's README shows of searches for kernels: a line for each record that is committed beside the search's script.

A record is the attempts.json of ch20/ai_kernel_generator.py: search_ch08_occupancy_h200.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from common.python.errors import BenchmarkError
from common.python.results import Interval, Origin
from common.python.wording import speedup_text
from tools.checks.written_tables import NOT_MEASURED, record, rows

MARKER = "searches"
SCRIPTS = "ch*/ai_kernel_generator.py"
HEADS = ("start", "attempts", "its constants", "those of the best", "over the start", "over the optimized side")


class _Attempt(BaseModel):
    number: int
    constants: dict[str, int]
    status: str
    speedup: float
    low: float
    high: float


class _Search(BaseModel):
    target: str
    start: dict[str, int]
    attempts: tuple[_Attempt, ...]
    origin: Origin
    beside_hand_written: Interval | None = None

    @property
    def best(self) -> _Attempt | None:
        """The fastest of those that the harness accepted; None where that is the start."""
        faster = [attempt for attempt in self.attempts if attempt.status == "PASSED" and attempt.low > 1]
        return max(faster, key=lambda attempt: attempt.speedup, default=None)


def searches(script: Path) -> str:
    """The table of all records beside `script`. Raises BenchmarkError, naming the file, for one that is none or that no GPU made."""
    found = []
    for path in sorted(script.parent.glob("search_*.json")):
        search = record(path, _Search, f"an attempts.json of {script.name}")
        if not search.origin.gpus:
            raise BenchmarkError(f"{path}: found a search that ran on no GPU; expected one of a GPU")
        found.append(search)
    if not found:
        return f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}."
    told = dict.fromkeys(_where(search.origin) for search in found)
    return rows(HEADS, map(_cells, found)) + f"\n\nMeasured with {'; '.join(told)}."


def _cells(search: _Search) -> list[str]:
    accepted = sum(attempt.status == "PASSED" for attempt in search.attempts)
    head = [f"`{search.target}`", f"{len(search.attempts)}, {accepted} passed", _text(search.start)]
    if not (best := search.best):
        return [*head, "no other is faster", "", ""]
    speedup = speedup_text(Interval(estimate=best.speedup, low=best.low, high=best.high))
    beside = speedup_text(search.beside_hand_written) if search.beside_hand_written else NOT_MEASURED
    return [*head, _text(best.constants), speedup, beside]


def _text(constants: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in constants.items())


def _where(origin: Origin) -> str:
    commit = f"commit {origin.commit[:10] or 'unknown'}{' with changes' if origin.dirty else ''}"
    return ", ".join([origin.gpus[0].rpartition(" ")[0], f"driver {origin.driver or 'unknown'}", commit, origin.date[:10] or "no date"])
