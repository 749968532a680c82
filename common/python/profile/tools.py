"""One process under a tool, and how it ended: the tool failed, the side crashed in it, or it took too long, each a sentence."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from common.python.machine.description import find_tool
from common.python.processes.profile_job import DONE, Job, command_of, give, printed_by, progress_of, withheld
from common.python.wording import seconds_text

_TOOLS_OWN = "=="  # begins ncu's and compute-sanitizer's messages among a program's


class ToolFailed(Exception):
    """A tool gave nothing; the text says what was found, and what was expected."""


@dataclass(frozen=True)
class Ended:
    """How a tool ended: its exit code, what it printed, and what the program under it printed if that went elsewhere."""

    code: int
    log: str
    program: str = ""

    @property
    def last_words(self) -> str:
        """The last line that the program printed, or the tool if that is all there is."""
        lines = [line.strip() for line in (self.program or self.log).splitlines() if line.strip()]
        own = [line for line in lines if not line.startswith(_TOOLS_OWN)]
        return (own or lines or ["nothing printed"])[-1][:200]

    @property
    def last_line(self) -> str:
        """The last line that the tool printed."""
        return next((line.strip()[:200] for line in reversed(self.log.splitlines()) if line.strip()), "nothing printed")

    def line_with(self, text: str) -> str:
        """The first line that has `text` in it, without what the tool puts before its messages; empty if none has."""
        line = next((line for line in self.log.splitlines() if text in line), "")
        return re.sub(r"^=+\s*(\w+==)?\s*", "", line).strip()


class SideCrashed(ToolFailed):
    """A side, not the tool, ended the process; `ended` is how."""

    def __init__(self, text: str, ended: Ended) -> None:
        super().__init__(text)
        self.ended = ended


def tool(name: str, advice: str) -> str:
    """The path of the profiler or sanitizer called `name`. Raises ToolFailed, with `advice`, if it is not installed."""
    path = find_tool(name)
    if path is None:
        raise ToolFailed(f"not found; {advice}")
    return str(path)


def run(command: Sequence[str], log: Path, environment: Mapping[str, str], limit_s: float) -> Ended:
    """Run `command` in a session of its own, none of which outlives it. Raises ToolFailed if it cannot start or takes too long."""
    with _started(command, log, environment) as process:
        code = _wait(process, limit_s)
    return Ended(code, _text(log))


class JobProcess:
    """A process under a tool, by the command that `under` begins: it imports what any job needs, and waits for its own.

    Neither it nor what it started outlives the block. Raises ToolFailed if it cannot start.
    """

    def __init__(self, under: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        path = log.with_suffix(".job.json")
        with contextlib.ExitStack() as stack:
            self._file = stack.enter_context(withheld(path))
            self._process = stack.enter_context(_started([*under, *command_of(path)], log, environment))
            self._end = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the process if it still runs, and delete the file of its job."""
        self._end.close()

    def do(self, job: Job, limit_s: float) -> Ended:
        """Give it its job, once, and wait for its end, for at most `limit_s` from now.

        Raises ToolFailed, SideCrashed if a side did not come to its end.
        """
        give(job, self._file)
        try:
            code = _wait(self._process, limit_s)
        except ToolFailed as failure:
            where = progress_of(job)
            raise ToolFailed(f"{failure}{f'; it was {where}' if where else ''}") from failure
        finally:
            self.close()
        ended = Ended(code, _text(self._log), printed_by(job))
        if (where := progress_of(job)) not in ("", DONE):
            found = f"the process ended with exit code {ended.code} {where} ({ended.last_words})"
            raise SideCrashed(f"{found}; expected a step that returns", ended)
        return ended


def run_job(under: Sequence[str], job: Job, log: Path, environment: Mapping[str, str], limit_s: float) -> Ended:
    """Do a job under a tool, by the command that `under` begins. Raises ToolFailed, SideCrashed if a side did not come to its end."""
    with JobProcess(under, log, environment) as process:
        return process.do(job, limit_s)


@contextlib.contextmanager
def _started(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        with log.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=dict(environment), start_new_session=True
            )
    except OSError as error:
        raise ToolFailed(f"{command[0]}: {error.strerror}; expected to start it") from error
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> int:
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise ToolFailed(f"took more than {seconds_text(limit_s)}; expected it to end by then (--timeout-multiplier)") from None


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")
