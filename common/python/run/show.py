"""`show`: a pair as a reader wants it: its idea, the diff, which is the lesson, of a ladder a diff a step, and what it gained where."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from common.python.errors import BenchmarkError
from common.python.gate.expectations import key_text, read_expectations
from common.python.gate.statistics import climb
from common.python.pairs.directives import first_line
from common.python.pairs.discovery import Pair, Tree, with_rungs
from common.python.pairs.goals import TIME
from common.python.pairs.predictions import DEFAULT_MODEL, predictions_of
from common.python.pairs.targets import select
from common.python.results import BASELINE, OPTIMIZED, Share
from common.python.wording import at_shape, speedup_text

_CONTEXT_LINES = 3


def show_pair(tree: Tree, target: str, console: Console | None = None, *, notes: bool = False) -> None:
    """Print the one pair that `target` names, with `notes` its workload too. Raises BenchmarkError if it names none or several."""
    selected = select(tree, [target]).selections
    if len(selected) != 1:
        raise BenchmarkError(f"show {target}: found {len(selected)} pairs; expected the name of one")
    pair = with_rungs(selected[0].pair, tree.root)
    console = console or Console(highlight=False, emoji=False)
    results = _results(pair)  # before anything is printed: a file may be wrong
    for path in (pair.workload, pair.sides["optimized"]):
        _print_line(console, f"{pair.target if path == pair.workload else 'idea'}: {first_line(path.read_text(encoding='utf-8'))}")
    rungs = [(pair.sides[before], pair.sides[after]) for before, after in climb(tuple(pair.sides))]
    for before, after in rungs or [(_nearest(pair, tree), pair.sides["optimized"])]:
        console.print()
        _print_change(console, before, after, tree.root)
    console.print()
    if _predicts_for_the_usual_model(pair):
        _print_line(console, f"predicted: times are of the {key_text(DEFAULT_MODEL)} where their line names no other model")
    for line in results or ["accepted: nothing yet, on any GPU model"]:
        _print_line(console, line)
    if notes:
        console.print()
        _print_source(console, pair.workload, tree.root)


def _results(pair: Pair) -> list[str]:
    """A line a GPU model and shape: `accepted on H200: 2.31x [2.28, 2.34], share of its ceiling 41 % → 93 % (dram)`.

    Raises BenchmarkError for a file that is not what its name says.
    """
    lines = []
    for path in sorted(pair.workload.parent.glob("expectations_*.json")):
        kept = read_expectations(path)
        for shape, found in kept.pairs.get(pair.name, {}).items():
            goal = "" if found.goal == TIME else f" as good at {found.goal}"
            gain = f"accepted on {key_text(kept.gpu)}{at_shape(shape)}: {speedup_text(found.ratio)}{goal}"
            lines.append(gain + _shares_text([found.sides[side].share for side in (BASELINE, OPTIMIZED) if side in found.sides]))
    return lines


def _predicts_for_the_usual_model(pair: Pair) -> bool:
    """Whether an equation gives a time, or joules, and names no GPU model."""
    try:
        lines, _ = predictions_of(pair.workload, pair.sides)
    except BenchmarkError:
        return False  # a run will tell what is wrong with the line, which is shown
    return any(line.value is not None and line.unit in ("s", "J") and not line.model for line in lines)


def _shares_text(shares: Sequence[Share | None]) -> str:
    """From which share of the ceiling to which; empty where one was not measured."""
    known = [share for share in shares if share is not None]
    if not known or len(known) < len(shares):
        return ""
    keys = ", ".join(dict.fromkeys(share.key for share in known))
    return f", share of its ceiling {' → '.join(f'{100 * share.share:.0f} %' for share in known)} ({keys})"


def _print_line(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=not console.is_terminal)


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
