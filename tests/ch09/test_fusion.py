"""ch09:fusion: the passes that the comments count make the ratio expected; loads do not wait for branches; the tolerance is tight."""

import re

import pytest

from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from tests.ch09.sides import CHAPTER, arguments, code_of, text_of, values_at
from tests.teeth import assert_accepts, assert_teeth

WORKLOAD = load_workload(CHAPTER / "workload_fusion.py")
SIDES = {"baseline_fusion.cu": ["x", "y", "sines", "n", "stream"], "optimized_fusion.cu": ["x", "y", "n", "stream"]}


@pytest.mark.parametrize("side", SIDES)
def test_every_argument_has_something_to_bind(side):
    assert arguments(WORKLOAD, side) == SIDES[side]


def test_the_ratio_expected_is_that_of_the_bytes_counted():
    """Prose against formula."""
    counted = [[int(number) for number in re.findall(r"// (\d) bytes (?:in|out)", text_of(side))] for side in SIDES]
    baseline, fused = (sum(numbers) for numbers in counted)
    expects = read_directives(CHAPTER / "optimized_fusion.cu").expects
    passes = [len(numbers) for numbers in counted]
    assert expects.startswith(
        f"{baseline // fused}x, {baseline} bytes of DRAM traffic an element in {passes[0]} passes against {fused} in {passes[1]};"
    )
    n = WORKLOAD.time_at["n"]
    assert fused * n == sum(WORKLOAD.work(n=n)[key] for key in ("dram_read", "dram_write"))
    assert 4 * n > 4 * 60 << 20


@pytest.mark.parametrize("side", SIDES)
def test_a_thread_has_all_its_loads_in_flight_before_it_computes(side, tmp_path):
    names = [re.sub(r"^@!?U?P\d ", "", text).split(" ")[0] for text in code_of(side, tmp_path)]
    first = names.index("LDG.E.CONSTANT")
    assert names[first : first + 4] == ["LDG.E.CONSTANT"] * 4


def test_no_argument_is_beyond_pi_where_the_sine_is_negative():
    values = values_at(WORKLOAD, {"n": 100_003})
    assert (values["x"].double().sin() >= 0).all()
    assert values["x"].max() > 3.14


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, {"n": 1025})


@pytest.mark.parametrize("shape", WORKLOAD.check_at, ids=str)
def test_the_library_is_right_on_values_it_had_not_seen(shape):
    assert_accepts(WORKLOAD, "ch09/library_fusion.py", shape)
