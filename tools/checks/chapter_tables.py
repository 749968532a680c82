"""Writes the table of every chapter and lab README from the pairs themselves and from what was measured, or says which differ."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from common.python.artifacts import write_whole
from common.python.directives import Directives, read_directives
from common.python.discovery import Pair, discover
from common.python.errors import BenchmarkError, ExitCode
from common.python.expectations import Expectation, Expectations, key_text, read_expectations
from common.python.figures import at_shape, speedup_text
from common.python.ladder import with_rungs
from common.python.project import PROJECT_ROOT
from common.python.results import BASELINE, OPTIMIZED
from common.python.stats import TIME, climb

BEGIN = "<!-- table: begin -->"
END = "<!-- table: end -->"
RUNG_COLUMNS = ("step", "idea", "over the step before", "share of ceiling")
COLUMNS = ("pair", "idea", "expected", "measured", "share of ceiling (baseline → optimized)", "proof")

_NOT_MEASURED = "not measured yet"


def rewritten(root: Path) -> dict[Path, str]:
    """What the README of every folder with pairs below `root` should say, by its path.

    Raises BenchmarkError, naming the file, for a README without markers, a pair without `expects:` and a tree with a broken pair.
    """
    tree = discover(root)
    if problems := [sentence for sentences in tree.problems.values() for sentence in sentences]:
        raise BenchmarkError("\n".join(problems))
    folders = groupby(tree.pairs, key=lambda pair: pair.workload.parent)
    found = {folder / "README.md": list(pairs) for folder, pairs in folders}
    return {path: _with_table(path, "\n".join([table(pairs), *ladders(pairs, root.resolve())])) for path, pairs in found.items()}


def table(pairs: list[Pair]) -> str:
    """The table of one folder's pairs, a row each."""
    return "\n".join([_row(COLUMNS), _row(["---"] * len(COLUMNS)), *(_row(_cells(pair)) for pair in pairs)])


def ladders(pairs: Iterable[Pair], root: Path) -> Iterator[str]:
    """The table of each ladder that was measured: every step with its idea, what it gains over the one before, and its share."""
    for pair in pairs:
        sides = with_rungs(pair, root).sides
        measured = [
            (f"{key_text(file.gpu)}{at_shape(shape)}", expected)
            for file in _expectations_beside(pair)
            for shape, expected in file.pairs.get(pair.name, {}).items()
        ]
        if climb(tuple(sides)) and measured:
            rows = [_rung_cells(pair, sides[BASELINE], measured, ("", BASELINE))]
            rows += [_rung_cells(pair, sides[after], measured, (before, after)) for before, after in climb(tuple(sides))]
            head = [_row(RUNG_COLUMNS), _row(["---"] * len(RUNG_COLUMNS))]
            yield "\n".join(["", f"The ladder of `{pair.name}`, each step against the one before it:", "", *head, *map(_row, rows)])


def _rung_cells(pair: Pair, path: Path, measured: Iterable[tuple[str, Expectation]], climbed: tuple[str, str]) -> list[str]:
    before, after = climbed
    ratios, shares = [], []
    for where, expected in measured:
        rung, side = expected.rungs.get(after), expected.sides.get(after)
        if rung and rung.over == before:
            ratios.append(f"{where}: {speedup_text(rung.ratio)}")
        if side and side.share:
            shares.append(f"{where}: {100 * side.share.share:.0f} %")
    link = f"[{after}]({os.path.relpath(path, pair.workload.parent)})"
    gained = "; ".join(ratios) or _NOT_MEASURED
    return [link, read_directives(path).idea, gained if before else "", "; ".join(shares) or _NOT_MEASURED]


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
    """Speedup and share of the ceiling, an entry a GPU and named shape, from the folder's expectations."""
    speedups, shares = [], []
    for file in files:
        for shape, expected in file.pairs.get(pair.name, {}).items():
            where = f"{key_text(file.gpu)}{at_shape(shape)}"
            goal = "" if expected.goal == TIME else f", {expected.goal} {speedup_text(expected.ratio)}"
            speedups.append(f"{where}: {speedup_text(expected.speedup)}{goal}")
            reached = [expected.sides[side].share for side in (BASELINE, OPTIMIZED)]
            if any(reached):
                shares.append(f"{where}: {' → '.join(f'{100 * share.share:.0f} %' if share else _NOT_MEASURED for share in reached)}")
    return "; ".join(speedups) or _NOT_MEASURED, "; ".join(shares) or _NOT_MEASURED


def _proof(directives: Directives) -> str:
    claims = [f"`{claim}`" for claim in directives.proves] + [f"has `{claim}`" for claim in directives.has]
    return ", ".join(claims) or "none"


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _with_table(readme: Path, text: str) -> str:
    try:
        whole = readme.read_text(encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(f"{readme}: found {error.strerror}; expected the README of a folder with pairs") from error
    before, begin, rest = whole.partition(BEGIN + "\n")
    _, end, after = rest.partition(END + "\n")
    if not (begin and end) or BEGIN in rest or END in before + after:
        raise BenchmarkError(f"{readme}: found no table to write; expected the lines {BEGIN} and {END}, each once and in this order")
    return f"{before}{begin}{text}\n{end}{after}"


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Write the tables, or with `--check` say which READMEs differ; 1 if any does, or if one cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a README differs")
    check = parser.parse_args(arguments).check
    try:
        texts = rewritten(root)
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return ExitCode.USAGE
    stale = [path for path, text in texts.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if not check:
            write_whole(path, texts[path])
        print(
            f"{path.relative_to(root)}: "
            + ("differs; expected the table that tools/checks/chapter_tables.py writes" if check else "written")
        )
    print(f"{len(texts) - len(stale)} of {len(texts)} tables were up to date")
    return ExitCode.USAGE if check and stale else ExitCode.GOOD


if __name__ == "__main__":
    sys.exit(main())
