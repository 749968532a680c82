"""ch07:async_prefetch: tiles without bank conflicts, all loads of a tile in flight at once, and answers that only all steps give."""

import pytest
import torch

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from tests.ch07.sides import CHAPTER, WARP, constants, text_of, wavefronts
from tests.support.cuda_sides import kernels_of
from tests.support.teeth import CPU, ROOT, accepts

WORKLOAD = load_workload(CHAPTER / "workload_async_prefetch.py")
SIDES = ("baseline_async_prefetch.cu", "optimized_async_prefetch.cu", "optimized_async_prefetch_bulk.cu")


def test_tile_and_launch_are_the_same():
    assert all(constants(side) == constants(SIDES[0]) for side in SIDES)
    assert len({text_of(side)[text_of(side).index("LAUNCH(") :] for side in SIDES}) == 1


@pytest.mark.parametrize("side", SIDES)
def test_rows_and_columns_of_16_bytes_take_the_least_wavefronts_that_512_bytes_can(side):
    pitch = 4 * constants(side)["PITCH"]
    for k in range(16):
        assert wavefronts([(2 * k + lane // 16) * pitch + lane % 16 * 16 for lane in WARP], 16) == 4
        assert wavefronts([lane * pitch + 16 * k for lane in WARP], 16) == 4


def test_the_timed_rows_are_a_warp_for_each_sm():
    assert WORKLOAD.time_at["rows"] == 132 * constants(SIDES[0])["ROWS"]


def test_bulk_copies_are_whole_16_bytes_from_and_to_whole_16_bytes():
    side = SIDES[2]
    assert 4 * constants(side)["STEPS"] % 16 == 4 * constants(side)["PITCH"] % 16 == 0
    assert all(4 * shape["cols"] % 16 == 0 for shape in (WORKLOAD.time_at, *WORKLOAD.check_at))


@pytest.mark.parametrize("architecture", ["90a", "100a"])
def test_the_baseline_has_all_loads_of_a_tile_in_flight_before_it_waits_for_one(architecture):
    (kernel,) = kernels_of(CHAPTER / SIDES[0], architecture)
    accesses = [text.split()[0][:3] for text in kernel.instructions if text.startswith(("LDG", "STS"))]
    assert accesses[:17] == ["LDG"] * 16 + ["STS"]


def test_no_lane_but_the_elected_one_is_asked_for_a_bulk_copy():
    (kernel,) = kernels_of(CHAPTER / SIDES[2])
    assert sum("UBLKCP" in text for text in kernel.instructions) == 2 * constants(SIDES[2])["ROWS"]  # before the loop and in it
    assert not any("U.ANY" in text for text in kernel.instructions)  # the branch back to the next lane


def smoothed(x, keep=15 / 16, gain=1 / 16, forget=None):
    """Rows as the sides smooth them, each FMA rounded once; what came before column `forget` may be lost there."""
    y, last = torch.empty_like(x), torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        last = torch.zeros_like(last) if t == forget else last
        last = (keep * last.double() + (gain * x[:, t]).double()).float()
        y[:, t] = last
    return y


def is_right(shape, **changed):
    x = Inputs(WORKLOAD, shape, 1, CPU, ROOT).values["x"]
    return accepts(WORKLOAD.tolerance("optimized"), [smoothed(x, **changed)], [WORKLOAD.reference(x.double())])


def test_the_order_of_the_sides_is_right_and_a_tile_that_forgets_the_one_before_is_not():
    shape = {"rows": 132, "cols": 1024}
    assert is_right(shape)
    assert not is_right(shape, forget=constants(SIDES[0])["STEPS"])
