"""Whom a lowered tolerance holds for is said of a library too: a CPU may lack the package, and then only a GPU's run finds out."""

import pytest

from tests.pairs.tree import pairs_of

CHANGED = [pair for pair in pairs_of() if "library" in pair.sides and "\n    changes=" in pair.workload.read_text("utf-8")]


@pytest.mark.parametrize("pair", CHANGED, ids=lambda pair: pair.target)
def test_a_workload_with_changes_and_a_library_says_whom_they_hold_for(pair):
    assert "\n    changed_by=" in pair.workload.read_text("utf-8"), (
        f'{pair.workload}: found `changes` beside {pair.sides["library"].name}; expected changed_by=("optimized", "library") where the '
        'library lowers its precision as well, or changed_by=("optimized",)'
    )
