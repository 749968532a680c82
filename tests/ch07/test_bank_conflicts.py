"""ch07:bank_conflicts: the turns that shared memory takes are those that the comments count, and the expected ratio follows from them."""

import re

import pytest
import torch

from common.python.child.sides.loader import import_file, load_workload
from common.python.pairs.directives import read_directives
from tests.ch07.sides import CHAPTER, WARP, arguments, constants, text_of, wavefronts
from tests.teeth import CPU, assert_teeth

WORKLOAD = load_workload(CHAPTER / "workload_bank_conflicts.py")
BASELINE, OPTIMIZED = "baseline_bank_conflicts.cu", "optimized_bank_conflicts.cu"


def turns(side):
    """Turns of shared memory for 32 floats of a tile: put there, loaded and stored by their row's thread, and fetched."""
    (width,) = re.findall(r"float tile\[ROWS\]\[([^\]]+)\]", text_of(side))
    width = eval(width, {}, constants(side))
    (along,) = {wavefronts([4 * (row * width + lane) for lane in WARP], 4) for row in range(32)}
    (across,) = {wavefronts([4 * (lane * width + column) for lane in WARP], 4) for column in range(32)}
    return along + across + across + along


@pytest.mark.parametrize("side", [BASELINE, OPTIMIZED])
def test_every_argument_has_something_to_bind(side):
    assert arguments(WORKLOAD, side) == ["x", "y", "rows", "stream"]


def test_the_expected_ratio_is_that_of_the_turns_and_of_what_memory_allows():
    ratio, before, after, cycles = re.search(
        r"^([\d.]+)x, .* (\d+) turns .* this (\d+): .* (\d+) cycles", read_directives(CHAPTER / OPTIMIZED).expects
    ).groups()
    assert (int(before), int(after)) == (turns(BASELINE), turns(OPTIMIZED)) == (66, 4)
    bytes_copied, bytes_a_cycle_and_sm = 2 * 32 * 4, 4300 / 132 / 1.9
    assert int(cycles) == round(bytes_copied / bytes_a_cycle_and_sm)
    assert float(ratio) == pytest.approx(int(before) / int(cycles), abs=0.05)


def test_the_sides_differ_in_their_padding_only():
    def code(side):
        return re.sub(r"//.*", "", text_of(side)).replace("COLS + 1]", "COLS]").split()

    assert code(BASELINE) == code(OPTIMIZED)


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, WORKLOAD.check_at[1], reduced=("x", 1))


def test_the_library_is_right():
    x = torch.randn(129, 32, generator=torch.Generator(CPU).manual_seed(1))
    answer = import_file(CHAPTER / "library_bank_conflicts.py").prepare(x)()
    assert (answer - WORKLOAD.reference(x.double())).abs().max() <= WORKLOAD.atol
