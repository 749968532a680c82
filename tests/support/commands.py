"""Runs the command line as its users do, in a process of its own, on small pairs that a test writes."""

from __future__ import annotations

import atexit
import functools
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from common.python.machine.description import child_environment
from common.python.pairs.sources import digest_of
from common.python.processes import messages
from common.python.processes.fork_server import ANY_CORE, Child, ForkServer
from common.python.results import PairResult
from common.python.run import suite
from common.python.run.suite import Outcome
from common.python.settings import Device, Settings
from tools.cli.benchmark_cli import run_command_line

ROOT = Path(__file__).resolve().parents[2]
ROOT_FIRST = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
CHILD_ENVIRONMENT = child_environment(ROOT, "cpu")  # before a test changes variables
LIMIT_S = 240.0  # a command that takes so long hangs, beside others on a machine of two cores too
_FAREWELL_S = 20.0

BASELINE = '"""Baseline: an addition."""\n\n\ndef prepare(x):\n    return lambda: x + x\n'
OPTIMIZED = '"""Optimized: a product."""\n\n\ndef prepare(x):\n    return lambda: x * 2\n'
FIELDS = {
    "inputs": 'lambda rand, n: {"x": rand.normal(n)}',
    "outputs": 'lambda n: {"y": Spec((n,), torch.float32)}',
    "reference": "lambda x: 2 * x",
    "time_at": '{"n": 4096}',
    "cpu_at": '{"n": 512}',
    "check_at": '({"n": 3},)',
    "work": 'lambda n: {"dram_read": 4 * n, "dram_write": 4 * n}',
    "rtol": "0.0",
    "atol": "0.0",
}


@dataclass(frozen=True)
class Finished:
    """How a command ended and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The one sentence of a request that could not be carried out; fails if there is more on either stream."""
        assert self.stdout == "", self.stdout
        assert self.stderr.startswith("error: "), self.stderr
        assert self.stderr.count("\n") == 1, self.stderr
        return self.stderr.removeprefix("error: ").strip()


def benchmark(*arguments: object, scratch: Path, under: Sequence[str] = ()) -> Finished:
    """Run the command line with `scratch` for its temporary files, so that its lock is not the one of the user's own runs."""
    return finished(start(*arguments, scratch=scratch, under=under))


def finished(command: subprocess.Popen[str]) -> Finished:
    """How it ended. One that runs on after the limit is ended and fails the test: none may hold its lock and pipes in the tests behind."""
    with command:
        try:
            stdout, stderr = command.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            command.terminate()  # it ends its children
            try:
                printed = "".join(command.communicate(timeout=_FAREWELL_S))
            except subprocess.TimeoutExpired:
                command.kill()
                printed = "it had to be killed"
            pytest.fail(f"still running after {LIMIT_S:g} s: {printed}")
    return Finished(command.returncode, stdout, stderr)


def start(*arguments: object, scratch: Path, under: Sequence[str] = ()) -> subprocess.Popen[str]:
    """The same, still running; `under` is a command that runs another, such as prlimit."""
    # In a shell's background job, as CI may be, Ctrl-C is ignored, and children inherit that.
    command = ["env", "--default-signal=INT,HUP", *under, sys.executable, ROOT / "tools/cli/benchmark_cli.py", *map(str, arguments)]
    return subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": ROOT_FIRST, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stop(command: subprocess.Popen[str], number: signal.Signals) -> tuple[Finished, list[psutil.Process]]:
    """Send `number` to a running command; how it ended, and those of its descendants that it left behind."""
    family = psutil.Process(command.pid).children(recursive=True)
    command.send_signal(number)
    return finished(command), left_of(family)


def left_of(processes: Sequence[psutil.Process], seconds: float = 5.0) -> list[psutil.Process]:
    """Those that still run after `seconds`. One that has ended and that nobody waits for, as in many a container, does not."""
    deadline = time.monotonic() + seconds
    while (left := [process for process in processes if _runs(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(happened: Callable[[], bool], what: str) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + LIMIT_S
    while not happened():
        assert time.monotonic() < deadline, f"{what} did not happen in {LIMIT_S:g} s"
        time.sleep(0.02)


def write_pair(
    root: Path, target: str = "demo:double", *, baseline: str = BASELINE, optimized: str = OPTIMIZED, library: str = "", **fields: str
) -> Path:
    """Write the files of `target` below `root`, with some `fields` of its Workload replaced by other source text."""
    directory, name = target.split(":")
    folder = root / directory
    folder.mkdir(parents=True, exist_ok=True)
    stated = "".join(f"    {field}={text},\n" for field, text in (FIELDS | fields).items())
    source = f'"""y = 2x."""\n\nimport torch\n\nfrom common import Metric, Spec, Workload\n\nWORKLOAD = Workload(\n{stated})\n'
    (folder / f"workload_{name}.py").write_text(source)
    for role, text in (("baseline", baseline), ("optimized", optimized), *([("library", library)] if library else [])):
        suffix = "cu" if "LAUNCH" in text else "py"
        (folder / f"{role}_{name}.{suffix}").write_text(text)
    return root


class Watcher:
    """Keeps what it is told; a test may have it do something `when` a row of that name begins or ends."""

    def __init__(self, **when: Callable[[str], None]) -> None:
        self.notes: list[str] = []
        self.begun: list[str] = []
        self._when = when

    def note(self, sentence: str) -> None:
        """Keep it."""
        self.notes.append(sentence)

    def started(self, target: str, index: int, total: int) -> None:
        """Keep it."""
        self.begun.append(target)
        self._when.get("started", str)(target)

    def phase(self, target: str, text: str) -> None:
        """Ignore it."""

    def finished(self, row: PairResult) -> None:
        """Do what the test wants."""
        self._when.get("finished", str)(row.target)


def loaded_worker(server: ForkServer, folder: Path, baseline: str, core: int = ANY_CORE, **choices: Any) -> tuple[Child, messages.Loaded]:
    """A worker that has loaded a `baseline` of that source from below `folder`; `choices` are those of Load, and of the fork."""
    write_pair(folder, baseline=baseline)
    starts = choices.pop("starts", ["triton"] if choices.get("triton") else [])
    child = server.fork("worker", folder / "log.txt", core, starts=starts)
    workload, file = folder / "demo/workload_double.py", folder / "demo/baseline_double.py"
    load = messages.Load(
        workload=str(workload),
        side=str(file),
        library="",
        device="cpu",
        folder=str(folder),
        digest=digest_of(workload, file),
        **{"interpret": False, "cold": False, "triton": False, "watched": False} | choices,
    )
    return child, child.ask(load, messages.Loaded, 60)


def run_here(root: Path, folder: Path, watcher: Watcher | None = None, *, server: Any = None, **choices: Any) -> Outcome:
    """Run a suite in this process, with a lock of its own beside `folder`, and the fork server of all tests unless another is given."""
    with _apart(folder.parent, server):
        return suite.run_suite(Settings(root=root, artifacts_dir=folder, device=Device.CPU, **choices), watcher or Watcher())


def benchmark_here(*arguments: object, scratch: Path) -> Finished:
    """What `benchmark` does, but in this process and with the fork server of all tests, which has no GPU: targets run on the CPU."""
    stdout, stderr = io.StringIO(), io.StringIO()
    on_cpu = ("--device", "cpu") if arguments[0] in ("run", "verify") and "--device" not in arguments else ()
    with _apart(scratch), redirect_stdout(stdout), redirect_stderr(stderr):
        code = run_command_line([str(argument) for argument in (*arguments, *on_cpu)])
    return Finished(code, stdout.getvalue(), stderr.getvalue())


@contextmanager
def _apart(scratch: Path, server: Any = None) -> Iterator[None]:
    """Temporary files below `scratch`, and so a lock of its own, and a fork server that outlives a run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(scratch))
        patch.setattr(suite, "fork_server", lambda *_: nullcontext(server or shared_server()))
        yield


@functools.cache
def shared_server() -> ForkServer:
    """The fork server of all tests in this process: importing torch takes longer than most of what is tested.

    No test may have it fork with Triton started, after which no child of it can have Triton's interpreter.
    """
    server = ForkServer(CHILD_ENVIRONMENT)
    atexit.register(server.stop)
    return server
