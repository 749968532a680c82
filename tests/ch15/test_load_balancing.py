"""ch15:load_balancing: where experts lie, and how many copies they have."""

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

side = import_file(PROJECT_ROOT / "ch15/shared_placement.py")


def busiest(load, held, ranks):
    """The busiest rank's load over the mean, if copies share their expert's load evenly."""
    local = len(held) // ranks
    sums = [sum(load[expert] / held.count(expert) for expert in held[r * local : (r + 1) * local]) for r in range(ranks)]
    return max(sums) * ranks / sum(load)


def test_the_hottest_expert_is_copied_first():
    assert side.copies_of([10, 1, 1, 6], 4, 2) == [1, 1, 1, 1]
    assert side.copies_of([10, 1, 1, 6], 5, 2) == [2, 1, 1, 1]
    assert side.copies_of([10, 1, 1, 6], 7, 3) == [3, 1, 1, 2]
    assert side.copies_of([10, 1, 1, 6], 7, 2) == [2, 2, 1, 2]


LOADS = {
    "even": [5] * 8,
    "one hot": [100, 1, 1, 1, 1, 1, 1, 1],
    "hot neighbours": [50, 50, 50, 50, 1, 1, 1, 1],
    "nobody came": [0] * 8,
}


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("load", LOADS)
def test_every_expert_has_a_slot_and_every_rank_is_full(load, ranks):
    local = 8 // ranks + 1
    held = side.placed(LOADS[load], ranks, local)
    assert len(held) == ranks * local
    assert set(held) == set(range(8))


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("load", ["even", "one hot", "hot neighbours"])
def test_ranks_are_about_even(load, ranks):
    held = side.placed(LOADS[load], ranks, 8 // ranks + 2)
    in_order = busiest(LOADS[load], list(range(8)), ranks)
    assert busiest(LOADS[load], held, ranks) <= min(in_order, 1.3)


def test_copies_lie_on_different_ranks():
    held = side.placed([100, 1, 1, 1], 4, 2)
    assert [sorted(held[r : r + 2]).count(0) for r in range(0, 8, 2)] == [1, 1, 1, 1]
