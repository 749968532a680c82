"""A workload says why a pair missed what was expected of it, and speaks of that expectation and of the ratio that was accepted."""

import re

import pytest

from common.python.directives import read_directives
from common.python.discovery import discover
from common.python.expectations import read_expectations
from tests.teeth import ROOT

STATED = re.compile(r"Expected ([\d.]+)x\b[^.]*? and ([\d.]+)x on an H200\b")
MISSED = 1.25
"""The factor from which on a ratio is so far from what was expected that its workload says why."""

CHAPTERS = ("ch06", "ch07", "ch08")
"""Those of which every miss has its reason."""

EXPLAINED = [(path, found) for path in sorted(ROOT.glob("ch*/workload_*.py")) if (found := STATED.search(path.read_text()))]


@pytest.mark.parametrize(("path", "found"), EXPLAINED, ids=lambda value: getattr(value, "stem", ""))
def test_a_reason_speaks_of_the_ratio_that_was_accepted(path, found):
    (pair,) = [pair for pair in discover(ROOT).pairs if pair.workload == path and pair.name == path.stem.removeprefix("workload_")]
    accepted = read_expectations(path.parent / "expectations_h200.json").pairs[pair.name]
    expected, measured = map(float, found.groups())
    assert expected == float(read_directives(pair.sides["optimized"]).expects.partition("x,")[0])
    assert all(row.ratio.estimate == pytest.approx(measured, rel=0.02) for row in accepted.values())


def accepted_by_side():
    """Every pair of those chapters, its expectation and a ratio that was accepted of it."""
    for pair in discover(ROOT).pairs:
        folder = pair.workload.parent
        if folder.name in CHAPTERS:
            expected = float(read_directives(pair.sides["optimized"]).expects.partition("x,")[0])
            rows = read_expectations(folder / "expectations_h200.json").pairs.get(pair.name, {})
            yield from ((pair, expected, row.ratio.estimate) for row in rows.values())


MISSES = [(pair, expected) for pair, expected, got in accepted_by_side() if max(got / expected, expected / got) > MISSED]


def test_misses_are_found():
    assert {"ilp", "memory_access", "transpose_vectorized"} <= {pair.name for pair, _ in MISSES}


@pytest.mark.parametrize(("pair", "expected"), MISSES, ids=lambda value: getattr(value, "name", ""))
def test_a_miss_has_a_reason(pair, expected):
    found = STATED.search(pair.workload.read_text())
    assert found, f"{pair.workload}: found no 'Expected {expected:g}x, and ...x on an H200'; expected why {pair.name} missed it"
    assert float(found[1]) == expected
