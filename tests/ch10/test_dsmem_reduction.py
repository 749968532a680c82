"""ch10:dsmem_reduction on the CPU: right sums, no wait that is not needed, and rows that fill the GPU."""

import shutil

import pytest

from tests.ch10.emulated import CHAPTER
from tests.ch10.rows import SHARED, Pair, waits
from tests.support.cuda_sides import constants_of

pytestmark = pytest.mark.slow

NAME = "dsmem_reduction"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    return Pair(NAME, tmp_path_factory.mktemp("built"))


@pytest.mark.parametrize("half", ["baseline", "optimized"])
def test_sums_are_right_at_every_shape(pair, half):
    for shape in pair.workload.check_at:
        assert pair.is_right(half, shape), shape


@pytest.mark.parametrize(("place", "text"), waits(NAME))
def test_no_wait_can_be_left_out(pair, place, text):
    assert pair.is_wrong_without(place, {"rows": 1, "cols": 9000}), f"right without `{text}`"


def test_all_waits_were_found():
    assert len(waits(NAME)) == 3


def test_a_row_is_one_round_of_loads_and_the_rows_fill_the_gpu(pair):
    (shape,) = pair.workload.timed_shapes.values()
    constants = constants_of(CHAPTER / SHARED)
    assert shape["cols"] <= constants["STRIDE"] * constants["EACH"] < shape["cols"] * 1.05
    assert shape["rows"] * constants["BLOCKS"] == 128
