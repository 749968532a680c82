"""Runs commands that the book prints, one after the other, and keeps what came of each: its exit code, its seconds and its rows.

    ./setup.sh python tools/checks/book_runs.py --naming labs/ --limit 600

The record is tools/checks/book_runs.tsv, a line for each command and machine; book_commands.py makes a table of it. A run of
`benchmark_cli` gets a folder of its own and waits for other runs; all else is as printed. Commands that a line stands for are left out,
unless --again. A command that takes longer than --limit is ended, and kept as such; one that a signal interrupts is ended, and not kept.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from common.python.command import Arguments, exit_with, finite_above_0
from common.python.errors import BenchmarkError
from common.python.machine.description import describe_machine
from common.python.project import PROJECT_ROOT
from common.python.run.interruption import interruptible
from common.python.storage import write_whole
from tools.checks.written_tables import rows

COMMANDS = (Path("tools/checks/book_commands.tsv"), Path("tools/checks/book_scripts.tsv"))
RECORD = Path("tools/checks/book_runs.tsv")
HEAD = "# What came of commands of the book: machine, day, commit, exit code, seconds, what it said at its end, command. Tab-separated.\n"
OVER = "over the limit"
_SHELL = "/bin/bash"
_REPORTS_S = 60.0


@dataclass(frozen=True)
class Done:
    """What came of a command on a machine; `code` is its exit code, or OVER."""

    machine: str
    day: str
    commit: str
    code: str
    seconds: str
    said: str
    command: str


def record_of(root: Path) -> list[Done]:
    """The record below `root`, in its order; nothing where there is none. Raises BenchmarkError for a line that is no record."""
    path = root / RECORD
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else (), start=1):
        fields = line.split("\t")
        if line.startswith("#"):
            continue
        if len(fields) != len(Done.__dataclass_fields__):
            raise BenchmarkError(f"{path}:{number}: found {len(fields)} fields; expected {len(Done.__dataclass_fields__)}")
        found.append(Done(*fields))
    return found


def keep(root: Path, done: Done) -> None:
    """Write a command's line, in place of an earlier one of that machine."""
    others = [each for each in record_of(root) if (each.machine, each.command) != (done.machine, done.command)]
    write_whole(root / RECORD, HEAD + "".join("\t".join(astuple(each)) + "\n" for each in (*others, done)))


def commands_in(root: Path, naming: str) -> Iterator[str]:
    """The commands with `naming` in them, as they are typed here."""
    for path in COMMANDS:
        for line in (root / path).read_text(encoding="utf-8").splitlines():
            command, _, instead = line.partition("\t")
            if command.strip() and not command.startswith("#") and naming in command:
                yield instead.strip() or command


def typed(command: str, folder: Path) -> str:
    """The command with a folder for what its run leaves, unless it names one."""
    if " run " not in f"{command} " or "benchmark_cli" not in command:
        return command
    own = "" if "--artifacts-dir" in command else f" --artifacts-dir {shlex.quote(str(folder))}"
    return f"{command}{own} --wait 3600"


def run(command: str, root: Path, limit: float, kept: Path | None = None) -> tuple[str, float, str]:
    """The exit code of a command, or OVER; its seconds; how many of its rows came out how, or else the last line that it printed.

    A run of pairs is left in the folder `kept`, if one is given.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder, log = kept or Path(scratch, "run"), Path(scratch, "log")
        binaries = shlex.quote(str(Path(sys.executable).parent))
        paths = f'export PATH={binaries}:"$PATH" PYTHONPATH={shlex.quote(str(root))}"${{PYTHONPATH:+:$PYTHONPATH}}"'
        began = time.monotonic()
        with (
            log.open("w", encoding="utf-8") as output,
            subprocess.Popen(
                [_SHELL, "-c", f"{paths}; {typed(command, folder)}"],
                cwd=root,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                code = str(process.wait(limit))
            except subprocess.TimeoutExpired:
                code = OVER
            finally:
                _end(process)  # nothing of it may run on: it would disturb whatever is measured next
        return code, time.monotonic() - began, _said(folder / "metrics.json", log).replace(f"{root}/", "")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that still runs, and what it started; kill it, if it takes longer than a run does to write its reports."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_REPORTS_S)


def _said(metrics: Path, log: Path) -> str:
    if metrics.exists():
        counts = Counter(row["status"] for row in json.loads(metrics.read_text(encoding="utf-8"))["rows"])
        return ", ".join(f"{count} {status}" for status, count in counts.items())
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return " ".join(lines[-1].split())[:160] if lines else ""


def machine_of(root: Path) -> tuple[str, str]:
    """The machine in words, and the commit that runs."""
    machine = describe_machine(root)
    names = Counter(gpu.name.removeprefix("NVIDIA ") for gpu in machine.gpus)
    words = ", ".join(name if count == 1 else f"{count} {name}" for name, count in names.items())
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return words or f"CPU, {machine.cores} cores", commit.stdout.strip()


def section(root: Path) -> str:
    """The page's table of what came of the commands below `root`, in the book's order; "" without any."""
    if not (known := record_of(root)):
        return ""
    place = {command: at for at, command in reversed([*enumerate(commands_in(root, ""))])}
    done = sorted(known, key=lambda each: (place.get(each.command, len(place)), each.machine))
    cells = [[f"`{each.command}`", f"{each.machine}, {each.day}", each.code, each.seconds, each.said] for each in done]
    return f"""
## What came of them

They ran one after the other, {len({each.command for each in done})} of {len(place)} so far. Without a GPU a pair is checked, not timed; \
its row has no time.
`python tools/checks/book_runs.py --naming labs/` runs those that name a lab, and keeps the result for this table.
Seconds are those of the whole command, on a machine that others used too.
Exit code 5: nothing could be measured here. 127: a program is missing.

{rows(("command", "machine", "exit code", "seconds", "rows, or its last line"), cells)}
"""


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Run what has no line yet, and keep what came of it."""
    parser = Arguments(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--naming", default="", help="run the commands with this in them (default: all)")
    parser.add_argument("--limit", type=finite_above_0, default=600.0, help="seconds that a command may take (default: 600)")
    parser.add_argument("--again", action="store_true", help="run those too that have a line for this machine")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the folder of each run in this new one, by its place: 0, 1, ...")
    options = parser.parse_args(arguments)
    if options.keep and options.keep.exists():
        raise BenchmarkError(f"--keep {options.keep}: found a folder or file of that name; expected none, so that no earlier run is read")
    machine, commit = machine_of(root)
    known = set() if options.again else {each.command for each in record_of(root) if each.machine == machine}
    left = [command for command in dict.fromkeys(commands_in(root, options.naming)) if command not in known]
    for place, command in enumerate(left):
        with interruptible():
            code, seconds, said = run(command, root, options.limit, options.keep and (options.keep / str(place)).absolute())
        keep(root, Done(machine, time.strftime("%Y-%m-%d", time.gmtime()), commit, code, f"{seconds:.0f}", said, command))
        print(f"{command}: {code}, {seconds:.0f} s, {said}", flush=True)
    return 0


if __name__ == "__main__":
    exit_with(main)
