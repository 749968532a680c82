"""Finds commands of the pages that would not run: what a reader is told to type behind ./setup.sh, in a line or in a sentence.

Each benchmark_cli command is read by the real command line, and planned as by --dry-run where it changes a shape or the ranks.
A script must be there, with the flags that it is given. Nothing is built, timed or written.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError
from common.python.pairs.discovery import Tree, discover
from common.python.pairs.sources import with_imports
from common.python.pairs.targets import select
from common.python.processes.fork_server import ForkServer
from common.python.project import PROJECT_ROOT
from common.python.run.options import settings_of
from tools.checks.book_commands import Planner, planner
from tools.cli.benchmark_cli import parsed

PAGES = ("*.md", "common/docs/*.md", "ch*/README.md", *(f"{folder}/**/README.md" for folder in ("labs", "tests", "tools")))

_COMMAND = re.compile(r"(?:^ *|`)\./setup\.sh ([^`\n]+)", re.MULTILINE)
_SUITE = ("run", "verify")


@dataclass(frozen=True)
class Command:
    """The words of a command, where a page prints it, and the targets that the page makes before: of those alone nothing is here yet."""

    page: Path
    line: int
    words: tuple[str, ...]
    made: frozenset[str]


def printed_in(page: Path) -> Iterator[Command]:
    """The commands of a page, without what the shell does with their output."""
    text, made = page.read_text(encoding="utf-8"), set[str]()
    for match in _COMMAND.finditer(text):
        tokens = shlex.shlex(match[1], posix=True, punctuation_chars=True)
        tokens.whitespace_split = True
        words: list[str] = []
        for token in tokens:
            if token[0] in "|&;<>()":
                break
            words.append(token)
        if words[:2] == ["benchmark_cli", "new"]:
            made.update(words[2:3])
        yield Command(page, text.count("\n", 0, match.start(1)) + 1, tuple(words), frozenset(made))


def complaint(command: Command, tree: Tree, plans_of: Planner) -> str:
    """Why a command at the root of `tree` would be refused, in one sentence; "" where it would run, or is of another program."""
    program, *arguments = command.words
    try:
        if program == "benchmark_cli":
            _try_command(arguments, command.made, tree, plans_of)
        elif program == "python" and arguments[:1] and arguments[0].endswith(".py"):
            return _complaint_of_script(arguments, tree.root)
    except BenchmarkError as error:
        return str(error)
    return ""


def _try_command(arguments: list[str], made: frozenset[str], tree: Tree, plans_of: Planner) -> None:
    """Raises BenchmarkError for what `benchmark_cli` would refuse. What lies below a --root of the reader's own is not looked for."""
    name, flags = parsed(arguments)
    settings = settings_of(name, {**flags, "root": tree.root}) if name in _SUITE else None
    target = flags.get("target")
    targets = settings.targets if settings else (target,) if target and name != "new" else ()
    if flags.get("root") or not targets or made.issuperset(targets):
        return
    if settings and (settings.kwargs or settings.sweep or settings.ranks):
        plans_of(settings)
    else:
        select(tree, targets)


def _complaint_of_script(arguments: list[str], root: Path) -> str:
    script = root / arguments[0]
    if not script.is_file():
        return f"found no {arguments[0]}; expected a script"
    text = "".join(path.read_text(encoding="utf-8") for path in with_imports(script))
    flags = [word.partition("=")[0] for word in arguments[1:] if word.startswith("--")]
    return next((f"{arguments[0]} has no {flag}; expected a flag that --help lists" for flag in flags if f'"{flag}"' not in text), "")


def findings(root: Path, server: ForkServer | None = None) -> Iterator[str]:
    """A sentence for each command of a page below `root` that would not run. Runs share `server`, or one of their own."""
    pages = sorted({page for pattern in PAGES for page in root.glob(pattern)})
    tree = discover(root)
    with planner(root, server) as plans_of:
        for command in (each for page in pages for each in printed_in(page)):
            if wrong := complaint(command, tree, plans_of):
                yield f"{command.page.relative_to(root)}:{command.line}: `{' '.join(command.words)}`: {wrong}"


def main(arguments: list[str] | None = None, server: ForkServer | None = None) -> int:
    """Print what would not run; 1 if there is any."""
    parser = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=PROJECT_ROOT, help="a checkout")
    found = list(findings(parser.parse_args(arguments).root.resolve(), server))
    for each in found:
        print(each)
    print(f"printed commands: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    exit_with(main)
