"""ch10:cluster_group on the CPU: right softmax, no wait that is not needed, and rows that a cluster just keeps."""

import math
import shutil

import pytest
import torch

from tests.ch10 import model
from tests.ch10.emulated import CHAPTER
from tests.ch10.rows import SHARED, Pair, waits
from tests.support.cuda_sides import constants_of

pytestmark = pytest.mark.slow

NAME = "cluster_group"
CONSTANTS = constants_of(CHAPTER / SHARED)
LONGEST = CONSTANTS["STRIDE"] * CONSTANTS["EACH"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    return Pair(NAME, tmp_path_factory.mktemp("built"))


@pytest.mark.parametrize("half", ["baseline", "optimized"])
def test_answers_are_right_at_every_shape(pair, half):
    for shape in pair.workload.check_at:
        assert pair.is_right(half, shape), shape


@pytest.mark.parametrize("half", ["baseline", "optimized"])
def test_what_is_masked_has_no_probability(pair, half):
    shape = {"rows": 1, "cols": 9000}
    x = torch.randn(1, 9000)
    x[:, 100:8500] = -math.inf  # all that most blocks have
    found = pair.answer(half, {"x": x}, shape)
    assert torch.allclose(found.double(), torch.softmax(x.double(), 1), rtol=pair.workload.rtol, atol=0)


@pytest.mark.parametrize(("place", "text"), waits(NAME))
def test_no_wait_can_be_left_out(pair, place, text):
    assert pair.is_wrong_without(place, {"rows": 1, "cols": 9000}), f"right without `{text}`"


def test_all_waits_were_found():
    assert len(waits(NAME)) == 3


def test_a_timed_row_is_more_than_a_block_keeps_and_rows_fill_the_gpu_in_whole_rounds(pair):
    (shape,) = pair.workload.timed_shapes.values()
    assert shape["rows"] % (2 * model.SMS) == 0
    assert 227 << 10 < 4 * shape["cols"] <= 4 * LONGEST


def test_a_row_that_the_cluster_cannot_keep_is_refused(pair):
    with pytest.raises(RuntimeError):
        pair.answer("optimized", {"x": torch.zeros(1, LONGEST + 1)}, {"rows": 1, "cols": LONGEST + 1})
