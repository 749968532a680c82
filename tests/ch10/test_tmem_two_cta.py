"""ch10:tmem_triple_overlap_two_cta on stand-ins for Blackwell: two blocks that multiply as one, right in any order of events."""

import itertools
import re

import pytest

from common.python.child.sides.loader import load_workload
from tests.ch10.emulated import CHAPTER, assert_right_however_late, build, inputs_of, is_right, shapes_of, skip_without_compiler, waits
from tests.support.cuda_sides import constants_of

pytestmark = pytest.mark.slow

WORKLOAD = load_workload(CHAPTER / "workload_tmem_triple_overlap_two_cta.py")
SIDE = "optimized_tmem_triple_overlap_two_cta.cu"
MULTIPROCESSORS = 3  # one pair, and one that finds no other
ROUNDS = {"m": 200, "n": 776, "k": 200}  # 4 tiles of 4 steps for the pair: ring and accumulators go round
SHAPES = shapes_of(WORKLOAD, ROUNDS)
WAIT = re.compile(r"\b(barrier_wait|warpgroup_sync|wait_until_stores_have_read|cluster_sync|show_barriers_to_cluster)\(")
WAITS = waits(SIDE, WAIT)


@pytest.fixture(scope="module")
def side(tmp_path_factory):
    skip_without_compiler()
    return build(SIDE, tmp_path_factory.mktemp("side"))


def right(c, values):
    return is_right(WORKLOAD, c, values)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_right_however_late_its_copies_and_products_are(side, shape):
    for seed in (1, 2):
        assert_right_however_late(side, WORKLOAD, shape, seed=seed, multiprocessors=MULTIPROCESSORS)


def test_all_waits_were_found():
    assert len(WAITS) == 12


@pytest.mark.parametrize(("place", "text"), WAITS)
def test_no_wait_can_be_left_out(side, place, text):
    values = inputs_of(WORKLOAD, ROUNDS)
    for laziness, seed in itertools.product(("late", "by chance", "at once"), range(8)):
        try:
            c = side.run(values, ROUNDS, seed=seed, laziness=laziness, skipped=place, multiprocessors=MULTIPROCESSORS)
        except RuntimeError:
            return
        if not right(c, values):
            return
    pytest.fail(f"{place}: right without `{text}`, in every order that was tried")


def test_what_a_block_keeps_fits_its_shared_memory():
    mine = constants_of(CHAPTER / SIDE)
    kept = mine["STAGES"] * (128 + mine["HALF_N"]) * 128 + 2 * 128 * mine["PANEL"] * 2
    assert kept <= 224 << 10
    assert kept + (128 + mine["HALF_N"]) * 128 > 227 << 10
