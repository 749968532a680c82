"""ch10:warp_spec_pingpong on stand-ins for Hopper: both sides right in any order of events, and alike in all but whose a tile is."""

import difflib
import itertools
import re
import subprocess

import pytest
import torch

from common.python.child.sides.loader import load_workload
from common.python.machine.description import find_tool
from common.python.pairs.directives import read_directives
from tests.ch10 import model
from tests.ch10.emulated import CHAPTER, LAZINESS, build, inputs_of, is_right, shapes_of, skip_without_compiler
from tests.cuda_sides import arguments_of, built
from tests.proved import states
from tests.teeth import BF16_BITS, assert_teeth

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
    values = inputs_of(WORKLOAD, shape)
    for laziness in LAZINESS:
        assert right(emulated[side].run(values, shape, laziness=laziness), values), laziness


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
def test_every_argument_has_something_to_bind(side):
    assert arguments_of(WORKLOAD, CHAPTER / side) == ["a", "b", "c", "m", "n", "k", "stream"]


def test_all_that_is_claimed_is_in_the_machine_code_and_the_turn_separates_the_sides(tmp_path):
    found = states(CHAPTER / OPTIMIZED, CHAPTER / BASELINE, "90a", tmp_path)
    assert {claim for claim, state in found.items() if state != "proven"} == set()
    for side in SIDES:
        assert "serialized" not in built(CHAPTER / side, tmp_path).log


def test_the_ratio_expected_is_that_of_products_and_draining_to_loads(tmp_path):
    """Prose against formula: the instructions of a drain are those of the machine code, and were taken to be issued one a cycle."""
    pattern = (
        r"([\d.]+)x at width (\d+): a tile's (\d+) cycles of products and (\d+) of .* in (\d+) of loads, (\d+) KB at .* ([\d.]+) TB/s$"
    )
    ratio, width, products, drain, loads, kilobytes, l2 = map(
        float, re.match(pattern, read_directives(CHAPTER / OPTIMIZED).expects).groups()
    )
    shape = WORKLOAD.timed_shapes[f"width {width:.0f}"]
    assert (shape["k"], shape["n"]) == (width, 4 * width)
    assert products == width * 128 * 128 / model.WGMMA
    assert kilobytes == (width / 64 + 1) * 32  # of each step, and of c
    assert loads == pytest.approx(kilobytes * 1024 * model.SMS / (l2 * 1e12) * 1.75e9, rel=0.02)  # at 1.75 GHz
    assert ratio == round((products + drain) / loads, 2)
    assert drain == pytest.approx(2 * _instructions_of_a_drain(tmp_path), rel=0.05)  # of two warps, which take turns to issue


def _instructions_of_a_drain(folder):
    """From where the baseline's last products are waited for to where the last panel is stored."""
    library = built(CHAPTER / BASELINE, folder).library
    listing = subprocess.run([find_tool("cuobjdump"), "-sass", library], capture_output=True, text=True, check=True).stdout
    code = re.findall(r"/\*[0-9a-f]{4,}\*/ +([^;]+?) *;", listing)
    waited = max(i for i, text in enumerate(code) if "DEPBAR.LE gsb0, 0x0" in text)
    return max(i for i, text in enumerate(code) if "UTMASTG" in text) - waited


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, {"m": 64, "n": 64, "k": 512}, reduced=("a", 1), bits=BF16_BITS - 1)


def test_the_tolerance_rejects_a_product_without_its_activation_and_one_by_tanh():
    values = inputs_of(WORKLOAD, {"m": 64, "n": 64, "k": 512})
    product = values["a"].double() @ values["b"].double().T
    for wrong in (product, torch.nn.functional.gelu(product, approximate="tanh"), torch.nn.functional.silu(product)):
        assert not right(wrong, values)
