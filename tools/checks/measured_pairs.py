"""Pairs with what was measured of them: a folder's pairs beside the expectations of every GPU model that has a file there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.gate.expectations import Expectation, Expectations, key_text, read_expectations
from common.python.gate.statistics import climb, geometric_interval
from common.python.pairs.discovery import SIDES, Pair, discover, with_rungs
from common.python.results import OPTIMIZED, Interval
from common.python.wording import at_shape

LIBRARY = SIDES[-1]
README = "README.md"
CONVERTED = "<!-- form: 2 -->"
_NEAR_THE_TOP = 10  # lines


@dataclass(frozen=True)
class MeasuredPair:
    """A pair with the steps of its ladder among its sides, and by key of a GPU model what was measured at each named shape.

    `models` has every model that has a file in the pair's folder; it holds nothing for one on which this pair was not measured.
    """

    pair: Pair
    models: Mapping[str, Mapping[str, Expectation]]

    @property
    def shapes(self) -> tuple[str, ...]:
        """The named shapes that were measured on any model, in the order of the first that has them."""
        return tuple(dict.fromkeys(shape for rows in self.models.values() for shape in rows))

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Each side of the ladder after the one before it; empty for a pair that is no ladder."""
        return climb(tuple(self.pair.sides))

    @property
    def optimized(self) -> Path:
        """The file of the optimized side."""
        return self.pair.sides[OPTIMIZED]

    def at(self, shape: str) -> dict[str, Expectation]:
        """By model what was measured at that shape."""
        return {model: rows[shape] for model, rows in self.models.items() if shape in rows}

    def timings(self) -> Iterator[tuple[str, str, Expectation]]:
        """Model, shape and what was measured there, of every timing."""
        for model, rows in self.models.items():
            for shape, expected in rows.items():
                yield model, shape, expected


def pairs_by_folder(root: Path) -> dict[Path, list[MeasuredPair]]:
    """Every folder with pairs below `root`, and its pairs. Raises BenchmarkError for a tree with a broken pair."""
    tree = discover(root)
    if problems := [sentence for sentences in tree.problems.values() for sentence in sentences]:
        raise BenchmarkError("\n".join(problems))
    folders = groupby(tree.pairs, key=lambda pair: pair.workload.parent)
    return {folder: list(_measured(folder, pairs, tree.root)) for folder, pairs in folders}


def _measured(folder: Path, pairs: Iterator[Pair], root: Path) -> Iterator[MeasuredPair]:
    files: list[Expectations] = [read_expectations(path) for path in sorted(folder.glob("expectations_*.json"))]
    for pair in pairs:
        yield MeasuredPair(with_rungs(pair, root), {file.gpu: file.pairs.get(pair.name, {}) for file in files})


def of_library(expected: Expectation, side: str = OPTIMIZED) -> Interval | None:
    """How many times as fast as the library a side is, from the times of each unit of the run that was accepted.

    None where either of the two was not timed.
    """
    if side == LIBRARY or not {side, LIBRARY} <= expected.sides.keys():
        return None
    own, library = (expected.sides[each].logs_ns for each in (side, LIBRARY))
    return geometric_interval([math.exp(its - log) for log, its in zip(own, library, strict=True)])


def is_converted(readme: str) -> bool:
    """Whether a page says, near its top, that it has the form that the checks of prose hold it to."""
    return CONVERTED in map(str.strip, readme.splitlines()[:_NEAR_THE_TOP])


def place(model: str, shape: str) -> str:
    """A model as people write it, with the mark of a named shape: `H200 @wide`."""
    return f"{key_text(model)}{at_shape(shape)}"
