"""The roofline script of chapter 9: a line for each row that was accepted, with the flops a byte and the speeds that follow from it."""

import subprocess
import sys
from itertools import pairwise

import pytest

from common.python.child.sides.loader import load_workload
from common.python.gate.expectations import read_expectations
from tests.ch09.sides import CHAPTER
from tests.support.teeth import ROOT

ACCEPTED = read_expectations(CHAPTER / "expectations_h200.json").pairs


@pytest.fixture(scope="module")
def lines():
    command = [sys.executable, CHAPTER / "roofline.py"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split() for line in printed]


def test_every_row_that_was_accepted_has_a_line(lines):
    assert [line[:2] for line in lines[1:]] == [[pair, shape] for pair, by_shape in ACCEPTED.items() for shape in by_shape]


def test_a_square_product_of_n_does_n_sixths_of_a_flop_for_a_byte_of_float32(lines):
    (tiling,) = [line for line in lines if line[0] == "tiling"]
    assert float(tiling[2]) == pytest.approx(4096 / 6, rel=1e-3)
    assert tiling[3] == "fp32"


@pytest.mark.parametrize(("pair", "flops"), [each for each in (("fusion", 2), ("fused_l2norm", 3)) if each[0] in ACCEPTED])
def test_a_pair_that_dram_limits_has_its_flops_too_and_speeds_in_bytes(lines, pair, flops):
    """The flops that it declares are far from their own ceiling, so its shares are of DRAM as before."""
    (line,) = [line for line in lines if line[0] == pair]
    workload = load_workload(CHAPTER / f"workload_{pair}.py")
    assert (float(line[2]), line[3]) == (pytest.approx(flops / 8, rel=1e-3), "dram")
    assert workload.work(**workload.time_at)["fp32_fma"] / 40e12 < 0.1 * ACCEPTED[pair]["default"].sides["optimized"].time_ns.estimate / 1e9
    moved = sum(workload.work(**workload.time_at)[key] for key in ("dram_read", "dram_write"))
    speeds = [float(word) for word, unit in pairwise(line) if unit == "TB/s"]
    times = [ACCEPTED[pair]["default"].sides[side].time_ns.estimate for side in ("baseline", "optimized")]
    assert speeds[1:] == pytest.approx([moved / ns / 1e3 for ns in times], abs=0.005)


def test_speeds_follow_from_the_times_that_were_accepted(lines):
    (tiling,) = [line for line in lines if line[0] == "tiling"]
    sides = ACCEPTED["tiling"]["default"].sides
    speeds = [float(word) for word, unit in pairwise(tiling) if unit == "TFLOP/s"]
    expected = [2 * 4096**3 / sides[side].time_ns.estimate / 1e3 for side in ("baseline", "optimized")]
    assert speeds[1:] == pytest.approx(expected, abs=0.05)
    assert speeds[0] == pytest.approx(expected[1] / sides["optimized"].share.share, abs=0.05)
