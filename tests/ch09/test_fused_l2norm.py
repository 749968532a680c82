"""ch09:fused_l2norm: the bytes that the comments count make the ratio expected, and the tolerance tells every other epsilon apart."""

import re

import pytest
import torch

from common.python.child.sides.cuda import Names, check_source
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from tests.teeth import CPU, ROOT, accepts, assert_accepts, assert_teeth

CHAPTER = ROOT / "ch09"
WORKLOAD = load_workload(CHAPTER / "workload_fused_l2norm.py")
SIDES = {
    "baseline_fused_l2norm.cu": ["x", "y", "squares", "scales", "rows", "cols", "eps", "stream"],
    "optimized_fused_l2norm.cu": ["x", "y", "rows", "cols", "eps", "stream"],
}
TYPICAL = WORKLOAD.check_at[3]


def text_of(side):
    return (CHAPTER / side).read_text()


def values_at(shape):
    return Inputs(WORKLOAD, shape, 1, CPU, ROOT).values


@pytest.mark.parametrize("side", SIDES)
def test_every_argument_has_something_to_bind(side):
    shape = WORKLOAD.check_at[0]
    signatures = check_source(CHAPTER / side, Names.of(WORKLOAD, read_directives(CHAPTER / side), values_at(shape), shape))
    assert [argument.name for argument in signatures.launch] == SIDES[side]


def bytes_an_element(side):
    """What the comments of its loops count, each of which stands above one."""
    counted = re.findall(r"// An element: (.+)\n +for \(int c", text_of(side))
    return sum(int(number) for line in counted for number in re.findall(r"\d+", line)), len(re.findall(r"for \(int c", text_of(side)))


def test_the_ratio_expected_is_that_of_the_bytes_counted():
    """Prose against formula."""
    baseline, fused = (bytes_an_element(side)[0] for side in SIDES)
    directives = read_directives(CHAPTER / "optimized_fused_l2norm.cu")
    assert directives.expects == f"{baseline / fused}x, {baseline} bytes of DRAM traffic an element in 5 passes against {fused} in 2"
    assert [bytes_an_element(side)[1] for side in SIDES] == [3, 2]
    assert fused * 4096 * 16384 == sum(WORKLOAD.work(**WORKLOAD.time_at)[key] for key in ("dram_read", "dram_write"))


def test_the_matrix_is_far_larger_than_an_l2_and_the_baseline_finds_nothing_of_it_there():
    rows, cols = WORKLOAD.time_at["rows"], WORKLOAD.time_at["cols"]
    assert 4 * rows * cols > 4 * 60 * 2**20


def test_the_rows_that_an_sm_keeps_leave_it_full_of_threads():
    threads = int(re.search(r"THREADS = (\d+)", text_of("optimized_fused_l2norm.cu"))[1])
    sums, reserved = 4 * threads // 32, 1024
    assert 2048 // threads == 8
    assert 8 * (4 * WORKLOAD.time_at["cols"] + sums + reserved) <= 228 << 10
    assert all(4 * shape["cols"] + sums <= 48 << 10 for shape in (*WORKLOAD.check_at, WORKLOAD.time_at))


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, TYPICAL, reduced=("x", 1))


@pytest.mark.parametrize("divisor", [lambda norm, eps: norm, lambda norm, eps: norm + eps, lambda norm, eps: (norm**2 + eps).sqrt()])
def test_the_tolerance_rejects_what_treats_epsilon_otherwise(divisor):
    values = values_at(TYPICAL)
    x, eps = values["x"].double(), TYPICAL["eps"]
    norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    expected = WORKLOAD.reference(x, eps)
    assert (norm < eps).any()
    assert (norm > eps).any()
    assert accepts(WORKLOAD.tolerance("baseline"), [x / norm.clamp_min(eps)], [expected])
    assert not accepts(WORKLOAD.tolerance("baseline"), [x / divisor(norm, eps)], [expected])


@pytest.mark.parametrize("shape", WORKLOAD.check_at, ids=str)
def test_the_library_is_right_on_values_it_had_not_seen(shape):
    assert_accepts(WORKLOAD, "ch09/library_fused_l2norm.py", shape)
