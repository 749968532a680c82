"""A finding about a compiled side is one sentence: the file, how many, the first cause, and what was expected."""

import pytest

from common.python.prove.compiled import compiler_notes, too_long
from common.python.results import CompilerFinding
from common.python.settings import Profile, Settings
from tests.support.plans import a_plan


@pytest.mark.parametrize(
    ("kind", "count", "sentence"),
    [
        ("broken", 1, "torch.compile broke a graph in 1 place, the first X; expected whole graphs"),
        ("broken", 2, "torch.compile broke a graph in 2 places, the first X; expected whole graphs"),
        ("left", 2, "torch.compile left 2 functions to Python, the first X; expected all compiled"),
        ("again", 1, "torch.compile compiled 1 time again, first X; expected one compilation for all calls"),
        ("limit", 1, "torch.compile gave 1 function up at its limit of recompilations, the first X; expected all compiled"),
        ("untuned", 3, "autotuning failed 3 times, first for X; expected one that runs, for PyTorch's own kernel was taken instead"),
    ],
)
def test_a_finding_is_a_sentence(tmp_path, kind, count, sentence):
    found = {"optimized": [CompilerFinding(kind=kind, count=count, first="X")]}
    assert list(compiler_notes(a_plan(tmp_path), found)) == [f"optimized_transpose.py: {sentence}"]


def test_sides_come_in_the_plans_order_and_one_without_findings_not_at_all(tmp_path):
    finding = CompilerFinding(kind="left", count=1, first="{braces}")
    notes = list(compiler_notes(a_plan(tmp_path), {"optimized": [finding], "baseline": [finding, finding]}))
    assert [note.partition("_")[0] for note in notes] == ["baseline", "baseline", "optimized"]
    assert "{braces}" in notes[0]
    assert list(compiler_notes(a_plan(tmp_path), {})) == []


def test_a_row_that_takes_long_beside_its_first_compilation_says_so(tmp_path):
    plan = a_plan(tmp_path)
    spent = {"build": 0.0, "verify": 45.3, "prove": 4.0, "measure": 22.0}, 12.0
    where = "verify 5 s, prove 4 s, measure 22 s, in 12 s of which its processes started"
    sentence = f"found 31 s of this row beside the 40 s of its first compilation ({where}); expected at most 25 s"
    assert list(too_long(plan, Settings(), 40.2, 31.4, *spent)) == [sentence]
    assert list(too_long(plan, Settings(), 40.2, 24.9, *spent)) == []
    assert list(too_long(plan, Settings(), 0.0, None, *spent)) == []  # no side compiles


@pytest.mark.parametrize(
    "choices",
    [
        {"profile": Profile.DEEP_DIVE},
        {"cold_start": True},
        {"sweep": {"n": ("1", "2")}},
        {"iterations": 9},
        {"repeat": 3},
        {"sustained": True},
        {"accept_regressions": True},
    ],
)
def test_a_row_that_was_asked_for_more_may_take_longer(tmp_path, choices):
    assert list(too_long(a_plan(tmp_path), Settings(**choices), 40.0, 99.0, {"measure": 99.0}, 50.0)) == []


@pytest.mark.parametrize("changes", [{"goal": "setup"}, {"device": "cpu"}])
def test_a_row_whose_goal_is_set_up_is_exempt_and_so_is_one_on_a_cpu(tmp_path, changes):
    assert list(too_long(a_plan(tmp_path, **changes), Settings(), 40.0, 99.0, {"measure": 99.0}, 50.0)) == []
