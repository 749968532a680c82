"""What nsys recorded of each side, out of the SQLite file that it exports: work on the GPU by the NVTX range in which it was started."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from common.python.profile.steps import GpuWork, SeenStep

_PUSH_POP, _START_END = 59, 60  # NVTX_EVENTS.eventType
PEER_COPY = 10  # CUPTI_ACTIVITY_KIND_MEMCPY.copyKind
_COPIES = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 8: "DtoD", 9: "HtoH", PEER_COPY: "PtoP"}
_TIMED = "start, end, correlationId, streamId"

Range = tuple[str, int, float, float]
"""An NVTX range: its text, its kind, and when it began and ended in ns."""


class UnreadableTrace(Exception):
    """The file holds no trace of the steps; the text says what was found instead."""


class NsysDatabase:
    """One exported report. A table of what did not happen is not there, and a release may add columns: nothing else is relied on."""

    def __init__(self, path: Path) -> None:
        try:
            self._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            self._tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
        except sqlite3.Error as error:
            raise UnreadableTrace(f"{path.name}: {error}") from error
        self.strings: Mapping[int, str] = dict(self.rows("StringIds", "id, value"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.close()

    def rows(self, table: str, columns: str, rest: str = "") -> list[Any]:
        """`columns` of a table's rows; none where the report has no such table. Raises UnreadableTrace for a column it lacks."""
        if table not in self._tables:
            return []
        try:
            return self._connection.execute(f"SELECT {columns} FROM {table} {rest}").fetchall()
        except sqlite3.Error as error:
            raise UnreadableTrace(f"{table}: {error}") from error

    def ranges(self) -> Iterator[Range]:
        """Every NVTX range that ended. A text that its program registered is in the table of strings."""
        for text, number, kind, start, end in self.rows("NVTX_EVENTS", "text, textId, eventType, start, end", "WHERE end IS NOT NULL"):
            yield text or self.strings.get(number, ""), kind, float(start), float(end)

    def work(self) -> Iterator[GpuWork]:
        """The GPU's work in the trace: kernels, copies and memsets. A CUDA graph that was traced as a whole is one entry."""
        for *when, name in self.rows("CUPTI_ACTIVITY_KIND_KERNEL", f"{_TIMED}, demangledName"):
            yield GpuWork(self.strings.get(name, "kernel"), "kernel", *when)
        for *when, kind in self.rows("CUPTI_ACTIVITY_KIND_MEMCPY", f"{_TIMED}, copyKind"):
            yield GpuWork(f"Memcpy {_COPIES.get(kind, kind)}", "gpu_memcpy", *when)
        for when in self.rows("CUPTI_ACTIVITY_KIND_MEMSET", _TIMED):
            yield GpuWork("Memset", "gpu_memset", *when)
        for when in self.rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", _TIMED):
            yield GpuWork("CUDA graph", "kernel", *when)

    def calls(self) -> dict[int, float]:
        """When the host made each call of the CUDA API, by the number that its work carries."""
        return dict(self.rows("CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId, start"))


def read_steps(path: Path, labels: Sequence[str]) -> dict[str, SeenStep]:
    """The step of each side, whose range is its label. Raises UnreadableTrace where a side's range or all its work is missing."""
    with NsysDatabase(path) as database:
        ranges = [found for found in database.ranges() if found[0] in labels]
        calls = database.calls()
        work = sorted(database.work(), key=lambda each: each.start_ns)
    return {label: _step(label, ranges, calls, work) for label in labels}


def _step(label: str, ranges: Sequence[Range], calls: Mapping[int, float], work: Sequence[GpuWork]) -> SeenStep:
    """A step waits for all its work inside its start/end range; inside the push/pop range the host is in the step itself."""
    mine = {kind: (start, end) for name, kind, start, end in ranges if name == label}
    if not mine.keys() & {_START_END, _PUSH_POP}:
        raise UnreadableTrace(f"no range {label}")
    begin, end = mine.get(_START_END) or mine[_PUSH_POP]
    host_begin, host_end = mine.get(_PUSH_POP, (begin, end))
    seen = tuple(each for each in work if begin <= calls.get(each.call, each.start_ns) <= end)
    if not seen:
        raise UnreadableTrace(f"no work on a GPU in the range {label}")
    return SeenStep(seen, host_end - host_begin)
