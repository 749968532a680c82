"""What a process under a profiler or a sanitizer is to do: a file that says so, and a file in which the process says how far it got."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from common.python.message import Message
from common.python.protocol import ShapeEntries

DONE = "done"

Mode = Literal["bracket", "trace", "check"]


class JobSide(Message):
    """One side: `label` names the NVTX range of its step, `library` is the built .cu or empty, `trace` where torch.profiler's goes."""

    label: str
    workload: str
    side: str
    library: str
    shapes: list[ShapeEntries]
    trace: str = ""


class Job(Message):
    """Every side's step, in one process.

    bracket   a steady step a side at its first shape, between cudaProfilerStart and cudaProfilerStop and in an NVTX range
    trace     the same, traced by torch.profiler
    check     a first call at every shape

    What the process prints goes to the file `log`, apart from what the tool prints, or to where the tool's goes if that is empty.
    """

    mode: Mode
    device: Literal["cuda", "cpu"]
    seed: int
    folder: str
    progress: str
    log: str
    sides: list[JobSide]


def command_of(job: Job, path: Path) -> list[str]:
    """Write `job` to `path`; the command that does it. What an earlier one said of its progress is gone."""
    path.write_text(job.model_dump_json(indent=2), encoding="utf-8")
    for file in filter(None, (job.progress, job.log)):
        Path(file).write_text("", encoding="utf-8")
    return [sys.executable, "-m", "common.python.profile_child", str(path)]


def progress_of(job: Job) -> str:
    """The last that its process said: what it was at, DONE, or nothing if it did not come to the first side."""
    return Path(job.progress).read_text(encoding="utf-8")


def printed_by(job: Job) -> str:
    """What its process printed into a file of its own."""
    return Path(job.log).read_text(encoding="utf-8", errors="replace") if job.log else ""
