"""ch10:cluster_group on the CPU: right softmax, no wait that is not needed, and the bytes that the ratio is expected from."""

import math
import re
import shutil

import pytest
import torch

from common.python.pairs.directives import read_directives
from tests.ch10 import model
from tests.ch10.emulated import CHAPTER
from tests.ch10.rows import SHARED, Pair, waits
from tests.cuda_sides import arguments_of, constants_of
from tests.proved import states
from tests.teeth import assert_accepts, assert_teeth

pytestmark = pytest.mark.slow

NAME = "cluster_group"
OPTIMIZED, BASELINE = CHAPTER / f"optimized_{NAME}.cu", CHAPTER / f"baseline_{NAME}.cu"
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


def test_a_row_that_the_cluster_cannot_keep_is_refused(pair):
    with pytest.raises(RuntimeError):
        pair.answer("optimized", {"x": torch.zeros(1, LONGEST + 1)}, {"rows": 1, "cols": LONGEST + 1})


def test_the_ratio_is_expected_from_these_bytes(pair):
    """Prose against formula."""
    (shape,) = pair.workload.timed_shapes.values()
    row = 4 * shape["cols"]
    at_once = 2 * model.SMS  # two blocks for each SM
    expects = read_directives(OPTIMIZED).expects
    read, both = 1 / model.READ, 2 / model.COPY  # of the matrix, in its bytes over TB/s; `both` is a read and a write at once
    assert expects.startswith(f"{(read + both) / both:.1f}x,")
    assert f"three passes of {shape['rows'] * row / 1e6:.0f} MB" in expects
    assert f"{at_once} rows at once are {at_once * row / 1e6:.0f} MB" in expects
    assert shape["rows"] % at_once == 0
    assert f"{row / 1e3:.0f} KB" in BASELINE.read_text()
    assert 227 << 10 < row <= 4 * LONGEST
    assert re.search(r"LONGEST = STRIDE \* EACH;", OPTIMIZED.read_text())


@pytest.mark.parametrize("architecture", ["90a", "100a"])
def test_the_claims_are_proven_by_machine_code(architecture, tmp_path):
    assert set(states(OPTIMIZED, BASELINE, architecture, tmp_path).values()) == {"proven"}


@pytest.mark.parametrize("side", [BASELINE, OPTIMIZED])
def test_every_argument_has_something_to_bind(pair, side):
    assert arguments_of(pair.workload, side) == ["x", "y", "rows", "cols", "stream"]


def test_the_tolerance_has_teeth(pair):
    assert_teeth(pair.workload, {"rows": 4, "cols": 20000}, reduced=("x", 1), identity=-math.inf)


def test_the_library_is_right_on_values_it_had_not_seen(pair):
    for shape in pair.workload.check_at[:3]:  # PyTorch's sum on a CPU is not as precise in the longest row
        assert_accepts(pair.workload, f"ch10/library_{NAME}.py", shape)
