"""ch09:fused_l2norm: its rows leave an SM full of threads, and the tolerance tells every other epsilon apart."""

import re

import pytest
import torch

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from tests.support.teeth import CPU, ROOT, accepts

CHAPTER = ROOT / "ch09"
WORKLOAD = load_workload(CHAPTER / "workload_fused_l2norm.py")
TYPICAL = WORKLOAD.check_at[3]


def text_of(side):
    return (CHAPTER / side).read_text()


def values_at(shape):
    return Inputs(WORKLOAD, shape, 1, CPU, ROOT).values


def test_the_matrix_is_far_larger_than_an_l2_and_the_baseline_finds_nothing_of_it_there():
    rows, cols = WORKLOAD.time_at["rows"], WORKLOAD.time_at["cols"]
    assert 4 * rows * cols > 4 * 60 * 2**20


def test_the_rows_that_an_sm_keeps_leave_it_full_of_threads():
    threads = int(re.search(r"THREADS = (\d+)", text_of("optimized_fused_l2norm.cu"))[1])
    sums, reserved = 4 * threads // 32, 1024
    assert 2048 // threads == 8
    assert 8 * (4 * WORKLOAD.time_at["cols"] + sums + reserved) <= 228 << 10
    assert all(4 * shape["cols"] + sums <= 48 << 10 for shape in (*WORKLOAD.check_at, WORKLOAD.time_at))


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
