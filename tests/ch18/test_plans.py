"""Chapter 18: how many tokens of each sequence a step takes, where batches lie, and into how many parts a context is split."""

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

scheduler = import_file(PROJECT_ROOT / "ch18/shared_scheduler.py")
batches = import_file(PROJECT_ROOT / "ch18/shared_batch_sizes.py")


@pytest.mark.parametrize(
    ("waiting", "budget", "expected"),
    [([1, 40, 1, 30], 12, [1, 10, 1, 0]), ([1, 40], None, [1, 40]), ([50, 50], 16, [16, 0]), ([1, 1], 1, [1, 1]), ([5, 9], 32, [5, 9])],
)
def test_sequences_that_decode_come_first_and_prompts_share_what_is_left(waiting, budget, expected):
    assert scheduler.plan(waiting, budget) == expected


@pytest.mark.parametrize(("steps", "slots", "capacity"), [(1, 1, 8), (8, 32, 256), (4, 6, 24)])
def test_no_request_has_the_position_of_padding(steps, slots, capacity):
    assert all(1 <= size <= slots for size in batches.sizes_of(steps, slots))
    assert all(0 <= at < capacity - 1 for row in batches.positions_of(steps, slots, capacity) for at in row)
