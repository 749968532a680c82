"""The process that a profiler or a sanitizer watches: both sides by the loader and the inputs of a worker, and no timer.

The parent starts it by exec, as nsys does not follow a fork. It may be started before its job is given: till then it has imported this
module, and neither a side nor CUDA was touched. No stream is held here: under a profiler a kernel that waits for the host would wait for
ever.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nvtx
import torch
from torch.autograd.profiler import profile, record_function

from common.python.child.device.trace import start_tracing
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import Side, Step, load_side, load_workload, look_back, look_here
from common.python.machine.description import set_compile_environment
from common.python.processes.messages import ShapeEntries
from common.python.processes.profile_job import DONE, Job, JobSide, read_job

_WARM_CALLS = 3


@dataclass(frozen=True)
class _Ready:
    """A side that is set up and, but for a first call, warm."""

    label: str
    trace: str
    side: Side
    inputs: Inputs
    step: Step


class Child:
    """One process's work on a job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._device = torch.device(job.device)
        self._cuda = job.device == "cuda"
        self._harness = set(sys.modules)
        if self._cuda:
            torch.cuda.set_stream(torch.cuda.Stream())  # as in a worker

    def run(self) -> None:
        """Do what the job says; lets through what a side raises."""
        if self._job.mode == "check":
            for side in self._job.sides:
                for shape in side.shapes:
                    self._check(side, shape)
        else:
            self._profile()
        self._tell(DONE)

    def _profile(self) -> None:
        if self._job.mode == "trace" and self._cuda:
            start_tracing()
        ready = []
        for side in self._job.sides:
            prepared = self._prepare(side, side.shapes[0])
            for call in range(_WARM_CALLS):
                prepared.inputs.rewrite(self._job.seed + 1 + call)
                prepared.step()
                self._wait()
            ready.append(prepared)
        if self._job.mode == "bracket" and self._cuda:
            torch.cuda.profiler.start()
        for prepared in ready:
            self._tell(f"in a step of {Path(prepared.label).name}")
            (self._traced if self._job.mode == "trace" else self._in_range)(prepared)
        if self._job.mode == "bracket" and self._cuda:
            torch.cuda.profiler.stop()
        for prepared in ready:
            self._close(prepared)

    def _in_range(self, ready: _Ready) -> None:
        """The step in two ranges: of its thread, the host's part alone; of the process, for work that other threads start, all of it."""
        whole = nvtx.start_range(ready.label)
        # torch names a range by its text, nvtx by a number that it registered for the text: ncu may tell the one or the other.
        with torch.cuda.nvtx.range(ready.label) if self._cuda else contextlib.nullcontext():
            ready.step()
        self._wait()
        nvtx.end_range(whole)

    def _traced(self, ready: _Ready) -> None:
        with profile(use_device="cuda" if self._cuda else None, use_kineto=True) as profiler:
            with record_function(ready.label):
                ready.step()
            self._wait()
        profiler.export_chrome_trace(ready.trace)

    def _check(self, side: JobSide, shape: ShapeEntries) -> None:
        ready = self._prepare(side, shape)
        self._tell(f"in a step of {Path(side.label).name}")
        ready.step()
        self._wait()
        self._close(ready)

    def _prepare(self, side: JobSide, shape: ShapeEntries) -> _Ready:
        self._tell(f"preparing {Path(side.label).name}")
        if side.caches:
            set_compile_environment(interpret=False, caches=Path(side.caches))
        if side.past is not None:
            look_here(side.past)
        workload = load_workload(Path(side.workload))
        if side.past is not None and Path(side.side).is_relative_to(side.past.then):
            look_back(side.past, self._harness)
        loaded = load_side(Path(side.side), workload, Path(side.library) if side.library else None, self._device)
        folder = Path(self._job.folder, Path(side.label).name)  # files of two sides in one process would have one name
        folder.mkdir(exist_ok=True)
        inputs = Inputs(workload, shape, self._job.seed, self._device, folder)
        step: Callable[[], object] = loaded.prepare(inputs.values, shape)
        self._wait()
        return _Ready(side.label, side.trace, loaded, inputs, step)

    def _close(self, ready: _Ready) -> None:
        ready.side.close()
        ready.inputs.remove_files()

    def _wait(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()

    def _tell(self, text: str) -> None:
        Path(self._job.progress).write_text(text, encoding="utf-8")


def main(path: Path) -> None:
    """Do the job in the file at `path`, as soon as it is given; nothing if it never is."""
    job = read_job(path)
    if job is None:
        return
    if job.log:
        log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
    Child(job).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
