"""Writes what becomes here of each command that the book prints: the pairs that it runs and what they need, or what to type instead.

Each command of book_commands.tsv is read by the real command line and planned as by --dry-run, on a machine without a GPU.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path

from common.python.command import exit_with
from common.python.errors import BenchmarkError
from common.python.machine.description import describe_machine
from common.python.machine.needs import FEATURES, PACKAGE, package_of, parse_need
from common.python.pairs.discovery import LIBRARY, Pair, discover
from common.python.pairs.targets import in_directory, select
from common.python.processes.fork_server import ForkServer
from common.python.project import PROJECT_ROOT
from common.python.run.options import settings_of
from common.python.run.suite import fork_server
from common.python.session.planning import Plan, make_plans
from common.python.settings import Device, Settings
from tools.checks import book_runs
from tools.checks.written_tables import rows, write_or_check
from tools.cli.benchmark_cli import parsed

COMMANDS = Path("tools", "checks", "book_commands.tsv")
PAGE = Path("common", "docs", "book-commands.md")
SCRIPT = "tools/cli/benchmark_cli.py"
PROFILERS = {"nsys": "Nsight Systems", "ncu": "Nsight Compute"}
ANY_MACHINE = "any machine"
HEAD = ("the book prints", "here", "needs, or is SKIPPED")

_LINE = re.compile(
    r"(?:[A-Z]\w*=\S+ )*(?:(?P<profiler>nsys|ncu) .+? )?(?:benchmark_cli|(?P<python>python )?(?P<script>tools/cli/benchmark_cli\.py))"
    r" (?P<arguments>.+)"
)
_INTRODUCTION = """\
# Commands of the book

The book prints these commands. Each was read by the command line of today, and its pairs were planned as by `--dry-run`.

- `./setup.sh` before a command runs it in the project's environment, which it makes first. So do `python` and `benchmark_cli`.
- `ch7` and `ch07` are the same folder. A name that moved is an alias, and the run says of which pair.
- One side alone has a time and no speedup. Both sides of a pair are the pair.
- A row that lacks what it needs is SKIPPED, with the reason, and the run goes on. `doctor` says what this machine has.
- Rows for two GPUs or more are checked by processes on the CPU where there is no GPU.
- Behind what a GPU must have stands the compute capability of those that have it.
- `any machine`: without a GPU the row runs on the CPU, or is checked there.

Other names of the book, of scripts, tools and files: [from-the-book.md](from-the-book.md).
"""


@dataclass(frozen=True)
class Printed:
    """A command of the book, the line of the file that it stands in, and what to type where it does not run; "" where it does."""

    line: int
    command: str
    instead: str


@dataclass(frozen=True)
class Resolved:
    """What a command runs, in words, and what that needs."""

    runs: str
    needs: str


Planner = Callable[[Settings], tuple[Plan, ...]]


def printed_in(path: Path) -> list[Printed]:
    """The commands of a file, in its order. Raises BenchmarkError for a file that cannot be read, and for a command that stands twice."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(f"{path}: found {error.strerror}; expected the commands of the book") from error
    found: dict[str, Printed] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        command, _, instead = line.partition("\t")
        if not command.strip() or command.startswith("#"):
            continue
        if command in found:
            raise BenchmarkError(f"{path}:{number}: found `{command}` in line {found[command].line} too; expected it once")
        found[command] = Printed(number, command, instead.strip())
    return list(found.values())


def arguments_of(command: str, root: Path) -> tuple[str, list[str]]:
    """The profiler around `benchmark_cli` in a command line, "" for none, and what `benchmark_cli` is given.

    Raises BenchmarkError where a shell at `root` would start no `benchmark_cli`.
    """
    found = _LINE.fullmatch(command)
    if not found:
        raise BenchmarkError(
            f"{command}: found no benchmark_cli to run; expected it, or python {SCRIPT}, at most behind {' or '.join(PROFILERS)}"
        )
    if found["script"] and not found["python"] and not os.access(root / SCRIPT, os.X_OK):
        raise BenchmarkError(f"{SCRIPT} is not executable; expected python before it")
    return found["profiler"] or "", shlex.split(found["arguments"])


def resolved(command: str, root: Path, plans_of: Planner) -> Resolved:
    """What a command runs below `root`. Raises BenchmarkError, as the command would, for what it refuses before anything runs."""
    profiler, arguments = arguments_of(command, root)
    name, flags = parsed(arguments)
    tree = discover(root)
    if name == "list-targets":
        pairs = in_directory(tree, flags["chapter"]) if flags["chapter"] else tree.pairs
        return Resolved(f"lists {_listed(pairs)}", ANY_MACHINE)
    if name != "run":
        raise BenchmarkError(f"{command}: found {name}; expected run or list-targets, of which alone the book prints commands")
    settings = settings_of(name, flags).model_copy(update={"root": root})
    if not settings.targets:
        select(tree, ())
        return Resolved("runs every pair", "each row its own")
    plans = plans_of(settings)
    alone = [f" ({plan.sides[0]} alone)" if plan.selection.is_half else "" for plan in plans]
    runs = _listed([plan.selection.pair for plan in plans], alone)
    needs = {plan.selection.pair.target: ", ".join(needed(plan)) for plan in plans}
    same = len(set(needs.values())) == 1
    words = [next(iter(needs.values()))] if same else [f"`{target}`: {need}" for target, need in needs.items() if need]
    return Resolved(f"runs {runs}", "; ".join(filter(None, [PROFILERS.get(profiler, ""), *words])) or ANY_MACHINE)


def _listed(pairs: Sequence[Pair], behind: Sequence[str] = ()) -> str:
    """The targets of `pairs`, with what stands `behind` each; of those that follow another of their folder without the folder."""
    before = ["", *(pair.directory for pair in pairs)]
    names = [pair.target.removeprefix(pair.directory if pair.directory == last else "") for last, pair in zip(before, pairs, strict=False)]
    return ", ".join(f"`{name}`{more}" for name, more in zip_longest(names, behind, fillvalue=""))


def needed(plan: Plan) -> list[str]:
    """What a machine must have for a row, in words; nothing where any will do. What only the library's side needs is left out."""
    own = [side for side in plan.sides if side != LIBRARY]
    needs = [need for each in (plan.workload_directives, *(plan.side_directives[side] for side in own)) for need in each.needs]
    counts = dict(parse_need(need) for need in needs)
    gpus = max(counts.pop("gpus", 0), plan.ranks if plan.described.ranks else 0)
    features = [f"{name} ({FEATURES[name].capabilities})" for name in counts if name in FEATURES]
    if not features and not gpus and any(plan.file(side).suffix == ".cu" for side in own):
        gpus = 1
    others = [f"the Python package {package_of(name)}" if name.startswith(PACKAGE) else name for name in counts if name not in FEATURES]
    return [*features, *([f"{gpus} GPUs" if gpus > 1 else "a GPU"] if gpus else []), *others]


def page(printed: Iterable[Printed], resolve: Callable[[str], Resolved]) -> str:
    """The page. Raises BenchmarkError for a command that runs and has something to type instead, and for one that has neither."""
    lines = []
    for each in printed:
        try:
            found = _becomes(each, resolve)
        except BenchmarkError as error:
            raise BenchmarkError(f"{COMMANDS}:{each.line}: {error}") from error
        lines.append([f"`{each.command}`", found.runs, found.needs])
    return f"{_INTRODUCTION}\n{rows(HEAD, lines)}\n"


def _becomes(printed: Printed, resolve: Callable[[str], Resolved]) -> Resolved:
    try:
        found = resolve(printed.command)
    except BenchmarkError as error:
        if not printed.instead:
            raise
        other = resolve(printed.instead)
        refused = str(error).partition("; expected ")[0]
        return Resolved(f"{refused}. Type `{printed.instead}`, which {other.runs}", other.needs)
    if printed.instead:
        raise BenchmarkError(f"found a command that runs, and `{printed.instead}` to type instead; expected nothing behind it")
    return found


@contextmanager
def planner(root: Path, server: ForkServer | None = None) -> Iterator[Planner]:
    """Plans a run below `root` as --dry-run does where there is no GPU; all runs share `server`, or one of their own."""
    machine = describe_machine(root).model_copy(update={"gpus": ()})
    tree = discover(root)
    known: dict[str, tuple[Plan, ...]] = {}
    with tempfile.TemporaryDirectory() as folder:

        def plans_of(settings: Settings) -> tuple[Plan, ...]:
            key = repr((settings.targets, settings.kwargs, settings.sweep, settings.ranks))
            if key not in known:
                selections = select(tree, settings.targets).selections
                on_cpu = settings.model_copy(update={"device": Device.CPU})
                known[key] = make_plans(selections, on_cpu, machine, used, Path(folder))
            return known[key]

        used = server or fork_server(Settings(root=root, device=Device.CPU), machine)
        try:
            yield plans_of
        finally:
            if server is None:
                used.stop()


def rewritten(root: Path, server: ForkServer | None = None) -> dict[Path, str]:
    """What the page below `root` should say, by path. Raises BenchmarkError for a command of which nothing becomes."""
    printed = printed_in(root / COMMANDS)
    with planner(root, server) as plans_of:
        text = page(printed, partial(resolved, root=root, plans_of=plans_of))
    return {root / PAGE: text + book_runs.section(root)}


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Write the page, or with `--check` say whether it differs; 1 if it does, or if it cannot be written."""
    return write_or_check(rewritten, root, "tools/checks/book_commands.py", arguments)


if __name__ == "__main__":
    exit_with(main)
