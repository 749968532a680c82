"""Checks every `predicts:` line of the tree: its sides, shapes and constants exist, and its arithmetic is right. Exit 1 for a bad line."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.pairs.directives import read_directives
from common.python.pairs.discovery import Pair, discover, with_rungs
from common.python.pairs.predictions import predictions_of, require_predictions, timed_shapes
from common.python.project import PROJECT_ROOT


@dataclass
class Found:
    """What a tree predicts: its equations, the pairs that guess, those that have an `expects:` line alone or nothing, what is wrong."""

    equations: int = 0
    guessing: int = 0
    expecting: int = 0
    silent: int = 0
    wrong: tuple[str, ...] = ()


def found_in(root: Path) -> Found:
    """What the pairs below `root` predict."""
    found = Found()
    wrong: list[str] = []
    for pair in discover(root).pairs:
        try:
            whole = with_rungs(pair, root.resolve())
            predictions, guess = predictions_of(whole.workload, whole.sides)
            if predictions:
                found.equations += require_predictions(whole.workload, whole.sides, shapes_of(whole))
            elif guess:
                found.guessing += 1
            elif read_directives(pair.sides["optimized"]).expects:
                found.expecting += 1
            else:
                found.silent += 1
        except BenchmarkError as error:
            wrong.append(str(error))
    found.wrong = tuple(dict.fromkeys(wrong))
    return found


def shapes_of(pair: Pair) -> dict[str, dict[str, object]]:
    """The timed shapes of a pair, by name: as its workload file writes them out, or else by loading it. Raises BenchmarkError."""
    if shapes := timed_shapes(pair.workload):
        return shapes
    from common.python.child.sides.loader import load_workload  # it imports torch, for seconds

    return {name: dict(shape) for name, shape in load_workload(pair.workload).timed_shapes.items()}


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Print what is wrong and how many pairs have equations; 1 if a line is wrong."""
    Arguments(description=__doc__).parse_args(arguments)
    try:
        found = found_in(root)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    for sentence in found.wrong:
        print(sentence)
    print(
        f"{found.equations} equations hold; {found.guessing} pairs guess, {found.expecting} have `expects:` alone, "
        f"{found.silent} predict nothing; {len(found.wrong)} are wrong"
    )
    return ExitCode.USAGE if found.wrong else ExitCode.GOOD


if __name__ == "__main__":
    exit_with(main)
