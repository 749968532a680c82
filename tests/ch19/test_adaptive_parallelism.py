"""ch19:adaptive_parallelism: what the planner picks."""

import re
import subprocess
import sys

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


def strategy(*flags):
    """The finished script."""
    command = [sys.executable, ROOT / "ch19/adaptive_parallelism_strategy.py", *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_strategy_of_a_model_is_the_planners_with_its_crossing():
    done = strategy("--model-size", "70B", "--ranks", "2")
    assert done.returncode == 0, done.stderr
    assert "calculated, not measured" in done.stdout
    for tokens, layout in re.findall(r"^ *(\d+) tokens per rank: (\w+)$", done.stdout, re.MULTILINE):
        assert PLANNER.plan(int(tokens), **SIZES) == layout
    first = int(re.search(r"replicas from (\d+) tokens", done.stdout)[1])
    assert [PLANNER.plan(tokens, **SIZES) for tokens in (first - 1, first)] == ["tensor_parallel", "replicas"]


@pytest.mark.parametrize(
    ("flags", "told"),
    [(("--model-size", "1B"), "invalid choice: '1B'"), (("--link", "0"), "--link: found '0'; expected bytes per second above 0")],
)
def test_a_model_that_is_not_known_and_no_link_are_named(flags, told):
    done = strategy(*flags)
    assert done.returncode == 2
    assert told in done.stderr
