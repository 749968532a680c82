"""How many answers a new request waits for."""

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

to_end = import_file(PROJECT_ROOT / "ch17/optimized_early_rejection.py").to_end


@pytest.mark.parametrize(
    ("waiting", "running", "found"),
    [
        (0, 3, 0),
        (0, 4, 1),  # its own slot counts, too
        (2, 4, 3),
        (2, 3, 2),  # one of those that wait takes the free slot
        (1, 1, 0),
    ],
)
def test_a_request_waits_for_one_answer_more_than_there_are_requests_without_a_slot_ahead(waiting, running, found):
    assert to_end(waiting, running, slots=4) == found
