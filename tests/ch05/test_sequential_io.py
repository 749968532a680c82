"""ch05:sequential_io: both sides read every byte once, in the requests that their files say."""

import os

import pytest

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import import_file, load_workload
from tests.support.teeth import CPU, ROOT, assert_accepts

WORKLOAD = load_workload(ROOT / "ch05/workload_sequential_io.py")
REQUEST = import_file(ROOT / "ch05/optimized_sequential_io.py").REQUEST
LARGEST = WORKLOAD.check_at[-1]


@pytest.fixture
def requests_of(monkeypatch, tmp_path):
    """The (offset, length) of every read that one step of a side makes."""

    def requests(side, shape):
        inputs = Inputs(WORKLOAD, shape, 1, CPU, tmp_path)
        step = import_file(ROOT / f"ch05/{side}_sequential_io.py").prepare(**inputs.values, **shape)
        made = []
        read = os.preadv
        with monkeypatch.context() as patch:
            patch.setattr(os, "preadv", lambda fd, buffers, offset: made.append((offset, read(fd, buffers, offset))))
            step()
        return made

    return requests


def test_baseline_makes_one_request_a_record_in_a_shuffled_order(requests_of):
    offsets = [offset for offset, _ in requests_of("baseline", LARGEST)]
    assert sorted(offsets) == [record * LARGEST["record_bytes"] for record in range(LARGEST["records"])]
    assert offsets != sorted(offsets)


def test_optimized_side_reads_front_to_back_in_large_aligned_requests(requests_of):
    size = LARGEST["records"] * LARGEST["record_bytes"]
    assert requests_of("optimized", LARGEST) == [(start, min(REQUEST, size - start)) for start in range(0, size, REQUEST)]
    assert size % REQUEST, "the last request must be a part of one"
    assert REQUEST % 4096 == 0


def test_reading_less_than_the_file_is_noticed(monkeypatch):
    read = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: read(fd, [buffers[0][: len(buffers[0]) * 63 // 64]], offset))
    with pytest.raises(AssertionError, match="optimized_sequential_io"):
        assert_accepts(WORKLOAD, "ch05/optimized_sequential_io.py", LARGEST)
