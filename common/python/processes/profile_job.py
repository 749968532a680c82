"""What a process under a profiler or a sanitizer is to do: a file that says so, and a file in which the process says how far it got.

The process may be there before its job: the file is locked until the job is in it. A lock is gone with who holds it, so none waits for
ever, and it needs no descriptor or signal that a tool between the two would have to let through.
"""

from __future__ import annotations

import contextlib
import fcntl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TextIO

from common.python.pairs.revisions import Past
from common.python.processes.messages import Message, ShapeEntries

DONE = "done"

Mode = Literal["bracket", "trace", "check"]


class JobSide(Message):
    """One side: `label` names the NVTX range of its step, `library` is the built .cu or empty, `trace` where torch.profiler's goes.

    One that lies in `past` finds its modules there. What a compiler made and chose for one when it was timed lies in the folder `caches`:
    tuned anew, it might have other kernels.
    """

    label: str
    workload: str
    side: str
    library: str
    shapes: list[ShapeEntries]
    trace: str = ""
    past: Past | None = None
    caches: str = ""


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


def command_of(path: Path) -> list[str]:
    """The command that does the job at `path`."""
    return [sys.executable, "-P", "-m", "common.python.child.profiled", str(path)]


@contextlib.contextmanager
def withheld(path: Path) -> Iterator[TextIO]:
    """The file of a job at `path`, for `give`: nobody reads it before that, or before the block ends, which deletes it if it is empty."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield file
        finally:
            if not path.stat().st_size:
                path.unlink()


def give(job: Job, file: TextIO) -> None:
    """Write `job` to its withheld file, and let its process read it. What an earlier one said of its progress is gone."""
    for other in filter(None, (job.progress, job.log)):
        Path(other).write_text("", encoding="utf-8")
    with file:
        file.write(job.model_dump_json(indent=2))


def read_job(path: Path) -> Job | None:
    """Wait until `give` has written the job to `path`, and return it; None if it was withdrawn, and the file left empty."""
    with path.open(encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        text = file.read()
    return Job.model_validate_json(text) if text else None


def progress_of(job: Job) -> str:
    """What the job's process reported last: the side it was at, or DONE; "" if it did not reach the first side."""
    return Path(job.progress).read_text(encoding="utf-8")


def printed_by(job: Job) -> str:
    """What its process printed into a file of its own."""
    return Path(job.log).read_text(encoding="utf-8", errors="replace") if job.log else ""
