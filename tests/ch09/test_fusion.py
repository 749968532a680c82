"""ch09:fusion: loads do not wait for branches, and no sine is of an argument beyond pi."""

import re

import pytest

from common.python.loader import load_workload
from tests.ch09.sides import CHAPTER, code_of, values_at

WORKLOAD = load_workload(CHAPTER / "workload_fusion.py")
SIDES = ("baseline_fusion.cu", "optimized_fusion.cu")


@pytest.mark.parametrize("side", SIDES)
def test_a_thread_has_all_its_loads_in_flight_before_it_computes(side):
    names = [re.sub(r"^@!?U?P\d ", "", text).split(" ")[0] for text in code_of(side)]
    first = names.index("LDG.E.CONSTANT")
    assert names[first : first + 4] == ["LDG.E.CONSTANT"] * 4


def test_no_argument_is_beyond_pi_where_the_sine_is_negative():
    values = values_at(WORKLOAD, {"n": 100_003})
    assert (values["x"].double().sin() >= 0).all()
    assert values["x"].max() > 3.14
