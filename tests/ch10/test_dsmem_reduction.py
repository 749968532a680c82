"""ch10:dsmem_reduction on the CPU: right sums, no wait that is not needed, and the bytes that the ratio is expected from."""

import re
import shutil

import pytest

from common.python.pairs.directives import read_directives
from tests.ch10 import model
from tests.ch10.emulated import CHAPTER
from tests.ch10.rows import SHARED, Pair, waits
from tests.cuda_sides import arguments_of, constants_of
from tests.proved import states
from tests.teeth import assert_accepts, assert_teeth

pytestmark = pytest.mark.slow

NAME = "dsmem_reduction"
OPTIMIZED, BASELINE = CHAPTER / f"optimized_{NAME}.cu", CHAPTER / f"baseline_{NAME}.cu"


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


def test_the_ratio_is_expected_from_these_bytes(pair):
    """Prose against formula."""
    (shape,) = pair.workload.timed_shapes.values()
    expects = read_directives(OPTIMIZED).expects
    total, read, fixed, second, ending = (
        float(found) for found in re.search(r"of (\S+) us: (\S+) to .* (\S+) to start.* (\S+) a second.* (\S+)$", expects).groups()
    )
    assert read == pytest.approx(4 * shape["rows"] * shape["cols"] / (model.READ * 1e6), abs=0.05)
    assert total == pytest.approx(read + fixed + second)
    assert expects.startswith(f"{total / (read + fixed + ending):.1f}x,")


def test_a_row_is_one_round_of_loads_and_the_rows_fill_the_gpu(pair):
    (shape,) = pair.workload.timed_shapes.values()
    constants = constants_of(CHAPTER / SHARED)
    assert shape["cols"] <= constants["STRIDE"] * constants["EACH"] < shape["cols"] * 1.05
    assert shape["rows"] * constants["BLOCKS"] == 128


@pytest.mark.parametrize("architecture", ["90a", "100a"])
def test_the_claims_are_proven_by_machine_code(architecture, tmp_path):
    found = states(OPTIMIZED, BASELINE, architecture, tmp_path)
    assert found.pop("kernels == 1") == "unchecked"
    assert set(found.values()) == {"proven"}


def test_every_argument_has_something_to_bind(pair):
    assert arguments_of(pair.workload, BASELINE) == ["x", "partial", "y", "rows", "cols", "stream"]
    assert arguments_of(pair.workload, OPTIMIZED) == ["x", "y", "rows", "cols", "stream"]


def test_the_tolerance_has_teeth(pair):
    assert_teeth(pair.workload, {"rows": 8, "cols": 40000}, reduced=("x", 1))


def test_the_library_is_right_on_values_it_had_not_seen(pair):
    for shape in pair.workload.check_at:
        assert_accepts(pair.workload, f"ch10/library_{NAME}.py", shape)
