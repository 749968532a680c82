"""A sandbox for a Python script that runs what nobody trusts: without network, with folders of its own, and with limits.

`run_in_sandbox` starts a guard, and the guard starts the script, confined. The guard adopts whatever the script's processes leave behind.
It ends all of them when the script ends, when they hold too much memory or take too long, and when whoever started the guard is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, NoReturn

import psutil

from common.python.errors import BenchmarkError
from common.python.machine.description import sandbox_environment
from common.python.processes.confined import UNCONFINED

RESTRICTIONS = ("network", "files", "signals", "memory", "time")
WRITABLE = ("run", "cache", "tmp")  # folders of the sandbox's own

_PR_SET_CHILD_SUBREAPER = 36
_GLANCE_S = 0.1
_SOON_S = 0.01
_MOST_OUTPUT = 64 << 20  # bytes
_GUARD = "common.python.processes.sandbox"
_CONFINED = "common.python.processes.confined"


@dataclass(frozen=True)
class Limits:
    """What the processes of a sandbox may take together, and which of `RESTRICTIONS` are off.

    Memory is what is resident in the host's, in bytes, a page once for each process that has it; a GPU's does not count. /dev/shm may
    hold as much once more.
    """

    memory_bytes: int
    seconds: float
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How a script ended: its exit code and what it printed; or in `broke` the limit that it broke, as the rest of a sentence."""

    code: int
    stdout: str
    stderr: str
    broke: str = ""


def run_in_sandbox(script: Path, arguments: Sequence[str], folder: Path, limits: Limits) -> Ended:
    """Run a Python script whose processes may write in `folder`'s run, cache and tmp alone, which are made where they are missing.

    tmp is gone afterwards, and so are all processes. Raises BenchmarkError where a restriction cannot be had: then nothing has run.
    """
    for name in WRITABLE:
        (folder / name).mkdir(parents=True, exist_ok=True)
    told = json.dumps(asdict(limits) | {"folder": str(folder.resolve()), "starter": os.getpid()})
    command = [sys.executable, "-P", "-m", _GUARD, told, str(script), *arguments]
    with subprocess.Popen(
        command, env=sandbox_environment(folder.resolve()), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    ) as guard:
        try:
            printed, _ = guard.communicate()
        finally:
            guard.terminate()  # where Ctrl-C came first: it ends what it guards
    _remove(folder / "tmp")
    if guard.returncode or not printed:
        raise BenchmarkError(f"the guard of a sandbox ended with exit code {guard.returncode}; expected what became of {script.name}")
    ended = Ended(**json.loads(printed))
    if ended.code == UNCONFINED:
        why = ended.stderr.strip().rpartition("\n")[2]
        raise BenchmarkError(f"there is no sandbox here ({why}); expected a kernel and a container that let a user have one")
    return ended


def require_sandbox(limits: Limits) -> None:
    """Raises BenchmarkError, in a sentence that says what is missing, where `run_in_sandbox` would."""
    with tempfile.TemporaryDirectory() as folder:
        nothing = Path(folder, "nothing.py")
        nothing.write_text("", encoding="utf-8")
        run_in_sandbox(nothing, [], Path(folder), limits)


def _remove(folder: Path) -> None:
    """A folder whose content may have been made hard to remove."""
    for parent, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            Path(parent).chmod(0o700)
    subprocess.run(["rm", "-rf", "--", str(folder)], check=False)


# --- the guard, a process of its own


def _guarded(told: Mapping[str, object], command: Sequence[str]) -> Ended:
    """What became of `command`, confined; no process of it is left."""
    limits = Limits(int(str(told["memory_bytes"])), float(str(told["seconds"])), tuple(told["allowed"]))  # type: ignore[arg-type]
    folder = Path(str(told["folder"]))
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    asked = {
        "writable": [str(folder / name) for name in WRITABLE],
        "shared_memory_bytes": limits.memory_bytes,
        "allowed": limits.allowed,
        "parent": os.getpid(),
    }
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = [sys.executable, "-P", "-m", _CONFINED, json.dumps(asked), *command]
        process = subprocess.Popen(child, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, start_new_session=True)
        try:
            broke = _watch(process, limits, int(str(told["starter"])))
        finally:
            _end_all(process)
        return Ended(process.wait(), _text(out), _text(err), broke)


def _watch(process: subprocess.Popen[bytes], limits: Limits, starter: int) -> str:
    """Wait until it ends; the limit that it broke where it has to be ended, as the rest of a sentence."""
    deadline = time.monotonic() + limits.seconds
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(_GLANCE_S)
        if "time" not in limits.allowed and time.monotonic() > deadline:
            return f"took more than {limits.seconds:g} s"
        if "memory" not in limits.allowed and _resident() > limits.memory_bytes:
            return f"held more than {limits.memory_bytes / 2**30:g} GiB of memory"
        if os.getppid() != starter:
            return "was left alone"
    return ""


def _resident() -> int:
    """Bytes that are resident for this process's descendants, all together."""
    total = 0
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            total += each.memory_info().rss
    return total


def _end_all(first: subprocess.Popen[bytes]) -> None:
    """Stop all descendants, so that none can start another, then end them; what they leave comes here and is ended too."""
    while family := psutil.Process().children(recursive=True):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for each in family:
                with contextlib.suppress(psutil.Error):
                    each.send_signal(number)
        first.poll()
        for each in family:
            with contextlib.suppress(ChildProcessError):  # another's child, which comes here later
                if each.pid != first.pid:
                    os.waitpid(each.pid, os.WNOHANG)
        time.sleep(_SOON_S)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_OUTPUT).decode(errors="replace")


def main() -> NoReturn:
    """Guard a command and print what became of it, as JSON."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(json.dumps(asdict(_guarded(json.loads(sys.argv[1]), sys.argv[2:]))))
    sys.exit(0)


if __name__ == "__main__":
    main()
