"""`show`: a pair as a reader wants it, the workload and then the diff, which is the lesson; of a ladder a diff a step."""

from __future__ import annotations

import difflib
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax

from common.python.errors import BenchmarkError
from common.python.gate.statistics import climb
from common.python.pairs.discovery import Pair, Tree, with_rungs
from common.python.pairs.targets import select

_CONTEXT_LINES = 3


def show_pair(tree: Tree, target: str, console: Console | None = None) -> None:
    """Print the one pair that `target` names. Raises BenchmarkError if it names none or several."""
    selected = select(tree, [target]).selections
    if len(selected) != 1:
        raise BenchmarkError(f"show {target}: found {len(selected)} pairs; expected the name of one")
    pair = with_rungs(selected[0].pair, tree.root)
    console = console or Console(highlight=False, emoji=False)
    _print_source(console, pair.workload, tree.root)
    rungs = [(pair.sides[before], pair.sides[after]) for before, after in climb(tuple(pair.sides))]
    for before, after in rungs or [(_nearest(pair, tree), pair.sides["optimized"])]:
        console.print()
        _print_change(console, before, after, tree.root)


def _print_change(console: Console, before: Path, after: Path, root: Path) -> None:
    if before.suffix == after.suffix:
        _print_code(console, diff_of(before, after, root), "diff")
        return
    # A diff of two languages teaches nothing.
    _print_source(console, before, root)
    console.print()
    _print_source(console, after, root)


def _nearest(pair: Pair, tree: Tree) -> Path:
    """What the optimized side is best read against: the baseline, or for a variant the plain optimized side if that is closer."""
    optimized = pair.sides["optimized"]
    plain = [other.sides["optimized"] for other in tree.pairs if other.workload == pair.workload and _is_plain(other) and other != pair]
    alike = [path for path in (pair.sides["baseline"], *plain) if path.suffix == optimized.suffix]
    return min(alike, key=lambda path: _changed_lines(diff_of(path, optimized, tree.root)), default=pair.sides["baseline"])


def _changed_lines(diff: str) -> int:
    return sum(line.startswith(("+", "-")) for line in diff.splitlines())


def _is_plain(pair: Pair) -> bool:
    return pair.workload.stem == f"workload_{pair.name}"


def diff_of(before: Path, after: Path, root: Path) -> str:
    """Unified diff of two files, named relative to `root`."""
    (old, new) = (path.read_text(encoding="utf-8").splitlines(keepends=True) for path in (before, after))
    return "".join(difflib.unified_diff(old, new, str(before.relative_to(root)), str(after.relative_to(root)), n=_CONTEXT_LINES))


def _print_source(console: Console, path: Path, root: Path) -> None:
    console.rule(str(path.relative_to(root)), align="left", style="dim")
    _print_code(console, path.read_text(encoding="utf-8"), "python" if path.suffix == ".py" else "cuda")


def _print_code(console: Console, text: str, language: str) -> None:
    if console.is_terminal:
        console.print(Syntax(text.rstrip("\n"), language, theme="ansi_dark", background_color="default", word_wrap=True))
    else:
        print(text.rstrip("\n"), file=console.file)  # rich would expand tabs
