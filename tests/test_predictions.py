"""Where a workload says why a pair missed what was expected of it, it speaks of that expectation and of the ratio that was accepted."""

import re

import pytest

from common.python.directives import read_directives
from common.python.discovery import discover
from common.python.expectations import read_expectations
from tests.teeth import ROOT

STATED = re.compile(r"Expected ([\d.]+)x\b[^.]*? and ([\d.]+)x on an H200\b")
EXPLAINED = [(path, found) for path in sorted(ROOT.glob("ch*/workload_*.py")) if (found := STATED.search(path.read_text()))]


@pytest.mark.parametrize(("path", "found"), EXPLAINED, ids=lambda value: getattr(value, "stem", ""))
def test_a_reason_speaks_of_the_ratio_that_was_accepted(path, found):
    (pair,) = [pair for pair in discover(ROOT).pairs if pair.workload == path and pair.name == path.stem.removeprefix("workload_")]
    accepted = read_expectations(path.parent / "expectations_h200.json").pairs[pair.name]
    expected, measured = map(float, found.groups())
    assert expected == float(read_directives(pair.sides["optimized"]).expects.partition("x,")[0])
    assert all(row.ratio.estimate == pytest.approx(measured, rel=0.02) for row in accepted.values())
