"""`verify --emulate`: CUDA C++ sides without a GPU, in the CPU emulation that lies with the tests; it checks, and says nothing of speed.

Each side is a process of its own, which has a clone's `tests/emulation` compile it with g++.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from common.python.errors import Status
from common.python.machine.description import child_environment
from common.python.project import PROJECT_ROOT, import_folders
from common.python.results import PairResult
from common.python.session.planning import NO_DEVICE, Plan

NOT_EMULATED = 3
"""The exit code of `python -m tests.emulation.emulate` for a side that uses what is not emulated."""

_EMULATION = PROJECT_ROOT / "tests" / "emulation"

CHECKED = "checked in the emulation on a CPU: two seeds, threads in three orders; not timed, and no GPU ran it"


def emulated(row: PairResult, plan: Plan, root: Path, limit_s: float) -> PairResult:
    """`row`, which was SKIPPED as there is no GPU, with what the emulation finds of its CUDA sides; any other row as it is.

    PASSED: all CUDA sides are right; sides in Python, a library's, are named in a note. WRONG_RESULT: one is not. SKIPPED, with what is
    missing: one cannot be emulated, or the baseline or optimized side is no CUDA C++. TIMEOUT: one takes longer than `limit_s`.
    """
    if row.status is not Status.SKIPPED or not plan.skip.startswith(NO_DEVICE):
        return row
    unchecked = [side for side in plan.sides if plan.file(side).suffix != ".cu"]
    if own := [side for side in unchecked if side != "library"]:
        return _skipped(row, f"{plan.file(own[0]).name} is no CUDA C++, and needs the GPU that the other side runs on")
    if not _EMULATION.is_dir():
        return _skipped(row, f"found no {_EMULATION.relative_to(PROJECT_ROOT)}, which a checkout has and an installed package has not")
    if shutil.which("g++") is None:
        return _skipped(row, "found no g++, which compiles what is emulated")
    for side in plan.sides:
        if side not in unchecked:
            code, said = _emulate(plan.selection.pair.workload, plan.file(side), root, limit_s)
            if code == NOT_EMULATED:
                return _skipped(row, said)
            if code:
                status = Status.TIMEOUT if code == _TIMED_OUT else Status.WRONG_RESULT
                return row.model_copy(update={"status": status, "reason": f"emulated: {said}"})
    left = (f"not emulated, as no CUDA C++: {', '.join(plan.file(side).name for side in unchecked)}",) if unchecked else ()
    return row.model_copy(update={"status": Status.PASSED, "reason": "", "notes": (*row.notes, CHECKED, *left)})


def _skipped(row: PairResult, why: str) -> PairResult:
    return row.model_copy(update={"reason": f"{row.reason}; --emulate: {why}"})


_TIMED_OUT = 124


def _emulate(workload: Path, side: Path, root: Path, limit_s: float) -> tuple[int, str]:
    """The exit code of the emulation of a side, and its last words; its process group is gone when this returns."""
    command = [sys.executable, "-P", "-m", "tests.emulation.emulate", "--workload", str(workload), str(side)]
    with subprocess.Popen(
        command,
        cwd=PROJECT_ROOT,
        env=child_environment(PROJECT_ROOT, "cpu", packages=import_folders(root)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return _TIMED_OUT, f"{side.name}: found no end in {limit_s:g} s; expected smaller check shapes"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    lines = printed.strip().splitlines()
    return process.returncode, lines[-1] if lines else f"{side.name}: found exit code {process.returncode} and no word"
