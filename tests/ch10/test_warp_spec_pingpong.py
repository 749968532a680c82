"""ch10:warp_spec_pingpong on stand-ins for Hopper: both sides right in any order of events, and alike in all but whose a tile is."""

import difflib
import itertools

import pytest
import torch

from common.python.child.sides.loader import load_workload
from tests.ch10.emulated import CHAPTER, LAZINESS, assert_right_however_late, build, inputs_of, is_right, shapes_of, skip_without_compiler
from tests.support.cuda_sides import built

pytestmark = pytest.mark.slow

WORKLOAD = load_workload(CHAPTER / "workload_warp_spec_pingpong.py")
BASELINE, OPTIMIZED = "baseline_warp_spec_pingpong.cu", "optimized_warp_spec_pingpong.cu"
SIDES = [BASELINE, OPTIMIZED]
ROUNDS = {"m": 300, "n": 264, "k": 456}  # 9 tiles of 8 steps on two multiprocessors, more than a ring
SHAPES = shapes_of(WORKLOAD, ROUNDS)
TURN = "Mma::SHARING == 1 && tile >= 1"  # the line of the skeleton that waits for a turn


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    skip_without_compiler()
    return {side: build(side, tmp_path_factory.mktemp("side")) for side in SIDES}


def right(c, values):
    return is_right(WORKLOAD, c, values)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("side", SIDES)
def test_a_side_is_right_however_late_its_copies_and_products_are(emulated, side, shape):
    assert_right_however_late(emulated[side], WORKLOAD, shape)


def test_whoever_does_not_wait_for_a_turn_takes_stages_that_are_not_his(emulated):
    lines = (CHAPTER / "shared_triple_overlap.cuh").read_text().splitlines()
    [number] = [number for number, line in enumerate(lines, 1) if TURN in line]
    values = inputs_of(WORKLOAD, ROUNDS)
    for seed, laziness in itertools.product(range(8), LAZINESS):
        try:
            c = emulated[OPTIMIZED].run(values, ROUNDS, seed=seed, laziness=laziness, skipped=f"shared_triple_overlap.cuh:{number}")
        except RuntimeError:
            return
        if not right(c, values):
            return
    pytest.fail("right without turns, in every order that was tried")


def test_the_sides_differ_in_whose_a_tile_is_and_in_the_form_of_gelu_that_suits_it():
    texts = [[line for line in (CHAPTER / side).read_text().splitlines() if not line.startswith("//")] for side in SIDES]
    changed = [line for line in difflib.ndiff(*texts) if line[0] in "+-"]
    assert changed == ["- using Wgmma = WgmmaSums<1, Gelu>;", "+ using Wgmma = WgmmaSums<2, CalledGelu>;"]


@pytest.mark.parametrize("side", SIDES)
def test_ptxas_serializes_no_products(side):
    assert "serialized" not in built(CHAPTER / side).log


def test_the_tolerance_rejects_a_product_without_its_activation_and_one_by_tanh():
    values = inputs_of(WORKLOAD, {"m": 64, "n": 64, "k": 512})
    product = values["a"].double() @ values["b"].double().T
    for wrong in (product, torch.nn.functional.gelu(product, approximate="tanh"), torch.nn.functional.silu(product)):
        assert not right(wrong, values)
