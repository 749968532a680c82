"""Runs every command that a README or a page of the docs prints in a ```sh block, in order: what a reader is told to type works."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common.python.command import Arguments, exit_with

PROJECT_ROOT = Path(__file__).resolve().parents[2]

_NEEDS_GPU = "gpu"
_LIMIT_S = 1800  # of one command; the longest runs the tests
_NOTHING_MEASURED = 5  # what a run exits with where every target is skipped
_FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})\s*(?P<language>\w*)[ \t]*(?P<rest>[^`]*)$")


@dataclass(frozen=True)
class Command:
    """One command line of a block, where it starts, and the exit codes that it may have."""

    line: int
    text: str
    expected: tuple[int, ...]


def commands_in(text: str) -> Iterator[Command]:
    """The commands of the ```sh blocks of a Markdown text; ```sh gpu says that without a GPU exit code 5 is right.

    A line that ends in a backslash goes on in the next; comments and empty lines are no commands.
    Raises ValueError, naming the line, for another word after `sh`, and for a block that never ends.
    """
    fence, expected = "", None
    command, start = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence, expected = "", None
        elif fence and expected is not None:
            start = start if command else number
            command += line.removesuffix("\\")
            if not line.endswith("\\"):
                if command.strip() and not command.lstrip().startswith("#"):
                    yield Command(start, command.strip(), expected)
                command = ""
        elif not fence and (match := _FENCE.match(line.strip())):
            fence = match["fence"]
            expected = _expected(number, match["rest"].strip()) if match["language"] == "sh" else None
    if fence:
        raise ValueError("found a block without an end; expected a closing fence")


def _expected(number: int, rest: str) -> tuple[int, ...]:
    if rest not in ("", _NEEDS_GPU):
        raise ValueError(f"line {number}: found ```sh {rest}; expected ```sh or ```sh {_NEEDS_GPU}")
    return (0, _NOTHING_MEASURED) if rest else (0,)


def run(command: Command, folder: Path) -> tuple[int, str]:
    """Exit code and output of `command`, run by bash in `folder` with nothing on its standard input; 124 if it took too long."""
    ran = subprocess.run(
        ["timeout", "--kill-after=10", str(_LIMIT_S), "bash", "-c", command.text],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return ran.returncode, ran.stdout


def check(readme: Path, folder: Path) -> int:
    """Run the commands of `readme` in `folder` and print how each ended; how many ended as none should, or 1 for none at all."""
    commands = list(commands_in(readme.read_text(encoding="utf-8")))
    if not commands:
        print(f"{readme}: found no command in a ```sh block; expected at least one")
        return 1
    failed = 0
    for command in commands:
        start = time.monotonic()
        code, output = run(command, folder)
        seconds = time.monotonic() - start
        if code in command.expected:
            print(f"ok   {seconds:6.1f} s  {command.text}", flush=True)
            continue
        failed += 1
        wanted = " or ".join(str(each) for each in command.expected)
        print(f"{output}\n{readme}:{command.line}: `{command.text}`: found exit code {code}; expected {wanted}", flush=True)
    return failed


def pages(root: Path) -> list[Path]:
    """The README of a project, and those pages of its docs that have commands."""
    docs = sorted((root / "common" / "docs").glob("*.md"))
    return [root / "README.md", *(page for page in docs if list(commands_in(page.read_text(encoding="utf-8"))))]


def folder_of(page: Path) -> Path:
    """Where the commands of a page are run: of this project's docs in the project, of any other page in its own folder."""
    return PROJECT_ROOT if page.parent == PROJECT_ROOT / "common" / "docs" else page.parent


def main() -> int:
    """Check the pages that are named, this project's README and docs if none is; 1 if a command failed."""
    parser = Arguments(description=__doc__)
    parser.add_argument("page", nargs="*", type=Path)
    named = parser.parse_args().page
    try:
        failed = sum(check(page, folder_of(page)) for page in [page.resolve() for page in named] or pages(PROJECT_ROOT))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    exit_with(main)
