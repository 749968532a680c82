"""Writes the table of every chapter and lab README from the pairs themselves and from what was measured, or says which differ."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from common.python.command import exit_with
from common.python.errors import BenchmarkError
from common.python.gate.expectations import Expectation, Expectations, key_text, read_expectations
from common.python.gate.statistics import TIME, climb
from common.python.pairs.directives import Directives, ladder_expects, read_directives
from common.python.pairs.discovery import Pair, discover, with_rungs
from common.python.project import PROJECT_ROOT
from common.python.results import BASELINE, OPTIMIZED
from common.python.wording import at_shape, speedup_text
from tools.checks.library_figures import LIBRARY, ladder_cells, of_library_text, reached_text
from tools.checks.written_tables import NOT_MEASURED, read_readme, rows, with_table, write_or_check

RUNG_COLUMNS = ("step", "idea", "expected", "over the step before", "time, share of ceiling")
NOT_ACCEPTED = "not accepted"
COLUMNS = ("pair", "idea", "expected", "measured", "share of ceiling (baseline → optimized)", "proof")


def rewritten(root: Path) -> dict[Path, str]:
    """What the README of every folder with pairs below `root` should say, by its path.

    Raises BenchmarkError, naming the file, for a README without markers, a pair without `expects:` and a tree with a broken pair.
    """
    tree = discover(root)
    if problems := [sentence for sentences in tree.problems.values() for sentence in sentences]:
        raise BenchmarkError("\n".join(problems))
    folders = groupby(tree.pairs, key=lambda pair: pair.workload.parent)
    found = {folder / "README.md": list(pairs) for folder, pairs in folders}
    texts = {path: "\n".join([table(pairs), *ladders(pairs, root.resolve())]) for path, pairs in found.items()}
    return {path: with_table(path, read_readme(path, "the README of a folder with pairs"), "table", text) for path, text in texts.items()}


def table(pairs: list[Pair]) -> str:
    """The table of one folder's pairs, a row each."""
    return rows(COLUMNS, map(_cells, pairs))


def ladders(pairs: Iterable[Pair], root: Path) -> Iterator[str]:
    """The table of each ladder: every step with its idea, what it should gain over the one before and gains, its time and share.

    Where the pair has a library side, a step's time says how many times as fast as that it is.
    """
    for pair in pairs:
        sides = with_rungs(pair, root).sides
        if not climb(tuple(sides)):
            continue
        measured = [
            (f"{key_text(file.gpu)}{at_shape(shape)}", expected)
            for file in _expectations_beside(pair)
            for shape, expected in file.pairs.get(pair.name, {}).items()
        ]
        said = {root / step: text for step, text in ladder_expects(pair.workload).items()}
        steps = []
        for before, after in [("", BASELINE), *climb(tuple(sides))]:
            link, *reached = _rung_cells(pair, sides[after], measured, (before, after))
            steps.append([link, read_directives(sides[after]).idea, _expected(sides[after], said) if before else "", *reached])
        if LIBRARY in sides:
            link, idea, *reached = ladder_cells(pair, measured)
            steps.append([link, idea, "", *reached])
        yield "\n".join(["", f"The ladder of `{pair.name}`, each step against the one before it:", "", rows(RUNG_COLUMNS, steps)])


def _rung_cells(pair: Pair, path: Path, measured: Iterable[tuple[str, Expectation]], climbed: tuple[str, str]) -> list[str]:
    before, after = climbed
    ratios, shares = [], []
    for where, expected in measured:
        if gained := _gained_text(expected, climbed):
            ratios.append(f"{where}: {gained}")
        if side := expected.sides.get(after):
            shares.append(f"{where}: {reached_text(side)}{of_library_text(pair, expected, after)}")
    link = f"[{after}]({os.path.relpath(path, pair.workload.parent)})"
    over = "; ".join(ratios) or NOT_MEASURED
    return [link, over if before else "", "; ".join(shares) or NOT_MEASURED]


def _gained_text(expected: Expectation, climbed: tuple[str, str]) -> str:
    """What a step gained over the one before it; empty where it was not timed, or over another."""
    before, after = climbed
    if rung := expected.rungs.get(after):
        return speedup_text(rung.ratio) if rung.over == before else ""
    return NOT_ACCEPTED if expected.rungs and after in expected.sides else ""


def _expected(path: Path, said: Mapping[Path, str]) -> str:
    """What is expected of a step over the one before it: what the ladder says behind it, else what its own file says.

    Raises BenchmarkError where neither does.
    """
    if not (text := said.get(path) or read_directives(path).expects):
        raise BenchmarkError(f"{path}: found no `expects:` line; expected one, or `# expects:` behind this step of the ladder")
    return text


def _expectations_beside(pair: Pair) -> list[Expectations]:
    return [read_expectations(file) for file in sorted(pair.workload.parent.glob("expectations_*.json"))]


def _cells(pair: Pair) -> list[str]:
    path = pair.sides["optimized"]
    files = _expectations_beside(pair)
    directives = read_directives(path)
    if not directives.expects:
        raise BenchmarkError(f"{path}: found no `expects:` line; expected the ratio that its bytes, flops or launches predict")
    link = f"[{pair.name}]({path.name})"
    return [link, directives.idea, directives.expects, *_measured(pair, files), _proof(directives)]


def _measured(pair: Pair, files: list[Expectations]) -> tuple[str, str]:
    """Speedup, over the library too, and share of the ceiling, an entry a GPU and named shape, from the folder's expectations."""
    speedups, shares = [], []
    for file in files:
        for shape, expected in file.pairs.get(pair.name, {}).items():
            where = f"{key_text(file.gpu)}{at_shape(shape)}"
            goal = "" if expected.goal == TIME else f", {expected.goal} {speedup_text(expected.ratio)}"
            speedups.append(f"{where}: {speedup_text(expected.speedup)}{goal}{of_library_text(pair, expected)}")
            reached = [expected.sides[side].share for side in (BASELINE, OPTIMIZED)]
            if any(reached):
                shares.append(f"{where}: {' → '.join(f'{100 * share.share:.0f} %' if share else NOT_MEASURED for share in reached)}")
    return "; ".join(speedups) or NOT_MEASURED, "; ".join(shares) or NOT_MEASURED


def _proof(directives: Directives) -> str:
    claims = [f"`{claim}`" for claim in directives.proves] + [f"has `{claim}`" for claim in directives.has]
    return ", ".join(claims) or "none"


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Write the tables, or with `--check` say which READMEs differ; 1 if any does, or if one cannot be written."""
    return write_or_check(rewritten, root, "tools/checks/chapter_tables.py", arguments)


if __name__ == "__main__":
    exit_with(main)
