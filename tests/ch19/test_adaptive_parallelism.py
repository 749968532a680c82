"""ch19:adaptive_parallelism: what the planner picks."""

import pytest

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

PLANNER = import_file(ROOT / "ch19/optimized_adaptive_parallelism.py")
SIZES = {"ranks": 2, "width": 8192, "hidden": 28672}


@pytest.mark.parametrize(("tokens", "layout"), [(1, "tensor_parallel"), (16, "tensor_parallel"), (2048, "replicas"), (65536, "replicas")])
def test_few_tokens_share_the_weights_and_many_stay_where_they_are(tokens, layout):
    assert PLANNER.plan(tokens, **SIZES) == layout


def test_small_weights_are_not_worth_a_collective():
    assert PLANNER.plan(1, ranks=2, width=512, hidden=2048) == "replicas"


def test_without_costs_of_links_tokens_always_travel():
    free = PLANNER.Machine(link=float("inf"), start=0.0)
    assert PLANNER.plan(1, **SIZES, machine=free) == "tensor_parallel"
