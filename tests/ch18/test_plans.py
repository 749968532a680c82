"""Chapter 18: where the batches of a trace of sizes lie, and into how many parts a context is split."""

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

batches = import_file(PROJECT_ROOT / "ch18/shared_batch_sizes.py")
paged = import_file(PROJECT_ROOT / "ch18/shared_paged_decode.py")


@pytest.mark.parametrize(("steps", "slots", "capacity"), [(1, 1, 8), (8, 32, 256), (4, 6, 24)])
def test_no_request_has_the_position_of_padding(steps, slots, capacity):
    assert all(1 <= size <= slots for size in batches.sizes_of(steps, slots))
    assert all(0 <= at < capacity - 1 for row in batches.positions_of(steps, slots, capacity) for at in row)


@pytest.mark.parametrize("sms", [1, 78, 132, 148])
@pytest.mark.parametrize("programs", [1, 8, 32, 128, 512, 5000])
def test_parts_of_a_context_fill_the_gpu_and_no_more(programs, sms):
    tokens = 65536
    span = paged.span_of(tokens, programs, sms)
    parts = -(-tokens // span)
    assert span % paged.TILE == 0
    assert parts == 1 or parts * programs <= paged.PER_SM * sms  # all at once: no program waits for another's end
    finer = -(-tokens // max(span - paged.TILE, paged.TILE))
    assert span == paged.TILE or finer * programs > paged.PER_SM * sms  # a tile less a part would be too many
