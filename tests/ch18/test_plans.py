"""Chapter 18: where the batches of a trace of sizes lie."""

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

batches = import_file(PROJECT_ROOT / "ch18/shared_batch_sizes.py")


@pytest.mark.parametrize(("steps", "slots", "capacity"), [(1, 1, 8), (8, 32, 256), (4, 6, 24)])
def test_no_request_has_the_position_of_padding(steps, slots, capacity):
    assert all(1 <= size <= slots for size in batches.sizes_of(steps, slots))
    assert all(0 <= at < capacity - 1 for row in batches.positions_of(steps, slots, capacity) for at in row)
