"""The plan of a campaign: a text file with a command a line, what it is expected to take, and whether it needs the machine to itself."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from common.python.errors import BenchmarkError

ALONE, ALL, EACH, SHELL = "alone", "all", "each", "$"


@dataclass(frozen=True)
class Task:
    """One line: `words` are what benchmark_cli is given, or a shell's command line after `$`; it takes some `seconds`.

    `how`: "alone", while no other GPU is at work; "all", on all GPUs together; "each", once on every GPU, before all others; or "", on
    the GPU that is free next.
    """

    seconds: float
    how: str
    words: str

    def __str__(self) -> str:
        return " ".join(filter(None, (f"{self.seconds:g}", self.how, self.words)))

    def command(self, python: str, folder: Path) -> list[str]:
        """What runs it; a run that names no folder for what it leaves behind gets `folder`."""
        if self.words.startswith(SHELL):
            return ["bash", "-c", self.words.removeprefix(SHELL)]
        words = shlex.split(self.words)
        into = ["--artifacts-dir", str(folder)] if words[0] == "run" and "--artifacts-dir" not in words else []
        return [python, "tools/cli/benchmark_cli.py", *words, *into]


def read_plan(path: Path) -> list[Task]:
    """The tasks in the file at `path`; empty lines and those that begin with # are left out. Raises BenchmarkError, naming the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BenchmarkError(f"{path}: found {error.strerror}; expected a plan, a command a line") from error
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{path}: found {error.reason}; expected a plan, UTF-8, a command a line") from error
    tasks = [_task(f"{path}:{number}", line) for number, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    if not tasks:
        raise BenchmarkError(f"{path}: found no command; expected at least one")
    return tasks


def plan_text(tasks: Iterable[Task]) -> str:
    """Tasks as `read_plan` reads them."""
    return "".join(f"{task}\n" for task in tasks)


def _task(where: str, line: str) -> Task:
    seconds, _, rest = line.strip().partition(" ")
    first, _, after = rest.strip().partition(" ")
    how, words = (first, after.strip()) if first in (ALONE, ALL, EACH) else ("", rest.strip())
    try:
        task = Task(float(seconds), how, words)
        good = 0 < task.seconds < math.inf and bool(words.removeprefix(SHELL).strip()) and bool(task.command("", Path()))
    except ValueError:
        good = False
    if not good:
        raise BenchmarkError(f"{where}: found {line.strip()!r}; expected seconds, perhaps alone, all or each, and a command")
    return task
