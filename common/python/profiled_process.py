"""One process under a tool, and how it ended: the tool failed, the side crashed in it, or it took too long, each a sentence."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.python.environment import find_tool
from common.python.profile_job import DONE, Job, command_of, printed_by, progress_of

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
    """The path of a tool. Raises ToolFailed where it is missing."""
    path = find_tool(name)
    if path is None:
        raise ToolFailed(f"not found; {advice}")
    return str(path)


def run(command: Sequence[str], log: Path, environment: Mapping[str, str], limit_s: float) -> Ended:
    """Run `command` in a session of its own, none of which outlives it. Raises ToolFailed if it cannot start or takes too long."""
    try:
        with log.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=dict(environment), start_new_session=True
            )
            try:
                code = process.wait(limit_s)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    except subprocess.TimeoutExpired:
        raise ToolFailed(f"took more than {limit_s:g} s; expected it to end by then (--timeout-multiplier)") from None
    except OSError as error:
        raise ToolFailed(f"{command[0]}: {error.strerror}; expected to start it") from error
    return Ended(code, log.read_text(encoding="utf-8", errors="replace"))


def run_job(under: Sequence[str], job: Job, log: Path, environment: Mapping[str, str], limit_s: float) -> Ended:
    """Do a job under a tool, by the command that `under` begins. Raises ToolFailed, SideCrashed if a side did not come to its end."""
    command = command_of(job, log.with_suffix(".job.json"))
    try:
        ended = replace(run([*under, *command], log, environment, limit_s), program=printed_by(job))
    except ToolFailed as failure:
        where = progress_of(job)
        raise ToolFailed(f"{failure}{f'; it was {where}' if where else ''}") from failure
    if (where := progress_of(job)) not in ("", DONE):
        found = f"the process ended with exit code {ended.code} {where} ({ended.last_words})"
        raise SideCrashed(f"{found}; expected a step that returns", ended)
    return ended
