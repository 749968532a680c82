"""What tests/pairs is parametrized over: every side of every pair that discovery finds, once, named by its target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.python.discovery import Pair, discover
from common.python.ladder import with_rungs
from common.python.project import PROJECT_ROOT


@dataclass(frozen=True)
class Side:
    """One side of a pair: its name in the row (baseline, a rung, optimized, library) and its file."""

    pair: Pair
    name: str

    @property
    def file(self) -> Path:
        """Its source."""
        return self.pair.sides[self.name]

    @property
    def id(self) -> str:
        """Its name in test ids."""
        return f"{self.pair.target}-{self.name}"


def pairs_of(root: Path = PROJECT_ROOT) -> list[Pair]:
    """The pairs under `root`, with their rungs. Fails where discovery finds a problem."""
    tree = discover(root)
    assert not tree.problems, tree.problems
    return [with_rungs(pair, root) for pair in tree.pairs]


def sides_of(pairs: Iterable[Pair]) -> list[Side]:
    """Every side once for each workload that it is checked against; variants share their baseline and their library."""
    found: dict[tuple[Path, Path], Side] = {}
    for pair in pairs:
        for name, file in pair.sides.items():
            found.setdefault((pair.workload, file), Side(pair, name))
    return list(found.values())


def parameters(sides: Iterable[Side], marks: Callable[[Side], tuple[pytest.MarkDecorator, ...]] = lambda _: ()) -> list[object]:
    """A parameter a side."""
    return [pytest.param(side, id=side.id, marks=marks(side)) for side in sides]


def role_of(file: Path) -> str:
    """The role that the name of a side's file states: baseline, optimized or library."""
    return file.name.partition("_")[0]
