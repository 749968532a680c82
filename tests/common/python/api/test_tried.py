"""What is wrong with a question of functions is one sentence, with what would help, and the honest question beside it is answered."""

import importlib
import re
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from common import compare, measure
from common.python.api import one_process
from common.python.api.compare import NotMeasured
from common.python.errors import BenchmarkError, Status
from common.python.measure import stopping

DRAWN = {"inputs": lambda rand: {"x": rand.normal(32, 64)}, "device": "cpu"}


@pytest.fixture(autouse=True)
def few_units(monkeypatch, tmp_path_factory):
    """As many as every interval has at least, with temporary files, and so a machine's lock, of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("scratch")))
    monkeypatch.setattr(stopping, "BUDGET_S", 1.0)
    monkeypatch.setattr(one_process, "_BUDGET_NS", 3e8)


@pytest.fixture
def sums(tmp_path, monkeypatch):
    """A module of somebody else's, outside the tree."""
    (tmp_path / "somebodys_tried.py").write_text(Path(__file__).with_name("sums.py").read_text())
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("somebodys_tried")
    del sys.modules["somebodys_tried"]


def remembering(*, key, copies):
    answers = {}

    def memo(x):
        known = answers.setdefault(key(x), x.softmax(-1))
        return known.clone() if copies else known

    return memo


@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize("key", [lambda _: 0, lambda x: x.dtype, lambda x: x.shape])
def test_functions_that_remember_their_first_answer_are_wrong_though_each_agrees_with_itself(key, copies):
    first, second = (remembering(key=key, copies=copies) for _ in range(2))
    for ask in (lambda: measure(first, **DRAWN), lambda: compare(first, second, **DRAWN)):
        with pytest.raises(
            NotMeasured, match=r"memo.*: gave the same answer to 8 draws of its inputs, as a function that remembers"
        ) as caught:
            ask()
        assert caught.value.status is Status.WRONG_RESULT


def test_an_answer_that_may_be_the_same_for_all_inputs_is_no_error():
    assert not [note for note in measure(lambda x: x.softmax(-1), **DRAWN).notes if "same answer" in note]
    finite = measure(lambda x: x.isfinite(), **DRAWN)
    assert "<lambda> gave the same answer to all draws: one remembered from an earlier call would not be seen" in finite.notes
    assert measure(lambda x: (x > 2).sum(), **DRAWN).verdict == "timed"
    permuted = {"inputs": lambda rand: {"x": rand.permutation(50)}, "device": "cpu"}
    with pytest.raises(
        NotMeasured, match=r"expected answers that change with the inputs, or reference=, which says that this one is right"
    ):
        measure(lambda x: x.sort()[0], **permuted)
    assert measure(lambda x: x.sort()[0], reference=lambda x: x.sort()[0], **permuted).verdict == "timed"
    assert measure(lambda x: x.softmax(-1), inputs=torch.rand(8, 8), device="cpu").verdict == "timed"


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"constants": ("b",)}, "constants or in_place name 'b'; expected some of the inputs ['x']"),
        ({"in_place": ("b",)}, "constants or in_place name 'b'; expected some of the inputs ['x']"),
        ({"work": {"fp32": "many"}}, "work gives fp32='many'; expected a finite amount that is not negative"),
        ({"work": {"fp23": 10}}, "work names 'fp23', which is no ceiling; expected fp32"),
    ],
)
def test_what_is_stated_of_the_work_is_held_against_the_inputs_and_the_ceilings(sums, by_name, stated, told):
    function = sums.fast if by_name else lambda x: x.sum(dim=1)
    with pytest.raises(BenchmarkError, match=f"^{re.escape(told)}$"):
        measure(function, inputs=sums.draw, device="cpu", **stated)


def test_work_that_gives_no_shares_is_told():
    result = measure(lambda x: x.softmax(-1), work={"fp32": 10.0}, constants=("x",), **DRAWN)
    assert "work gives no shares of the ceiling: those are of functions timed in fresh processes" in result.notes


@pytest.mark.parametrize("by_name", [True, False])
def test_a_reference_that_cannot_be_called_in_float64_says_what_helps(sums, by_name):
    function = sums.weighted if by_name else torch.nn.Linear(64, 64)
    inputs = sums.draw if by_name else DRAWN["inputs"]
    helps = r"called in float64 as the reference: .*raised RuntimeError: .*; expected reference=, or reference_in='float32', as where"
    with pytest.raises(BenchmarkError, match=helps):
        measure(function, inputs=inputs, device="cpu")
    assert measure(function, inputs=inputs, device="cpu", reference_in="float32").verdict == "timed"


def test_a_function_without_an_answer_to_check_is_refused():
    with pytest.raises(BenchmarkError, match=r"^<lambda> returned out of shape \(0,\); expected no extent below 1, or nothing is checked$"):
        measure(lambda x: x + 1, inputs=torch.empty(0), device="cpu")


@pytest.mark.parametrize(
    ("function", "inputs", "told"),
    [
        (lambda x: x, lambda rand, n: {"x": rand.normal(n)}, r"^inputs: missing a required argument: 'n'; expected shape=\{'n': \.\.\.\} "),
        (lambda x: x, lambda: torch.ones(3), r"^inputs: too many positional arguments; expected a function of rand and of the entries of "),
        (lambda x: x, lambda rand: {"x": rand.nromal(3)}, r"^inputs: test_tried\.py:\d+: raised AttributeError: .*'nromal'"),
        (lambda x: x.sofmax(), lambda rand: {"x": rand.normal(3)}, r"^<lambda>: test_tried\.py:\d+: raised AttributeError: .*'sofmax'"),
    ],
)
def test_what_functions_raise_is_told_with_its_place(function, inputs, told):
    with pytest.raises(BenchmarkError, match=told):
        measure(function, inputs=inputs, device="cpu")


def test_a_slip_of_inputs_is_told_of_functions_with_names(sums):
    with pytest.raises(BenchmarkError, match=r"^inputs: somebodys_tried\.py:\d+: raised AttributeError: .*'nromal'"):
        measure(sums.fast, inputs=sums.misspelt, device="cpu")


def test_inputs_can_be_all_that_a_function_takes_by_name():
    assert measure(lambda **given: given["x"] + 1, **DRAWN).verdict == "timed"
    assert measure(lambda x, *, by=2, **others: x * by, **DRAWN).verdict == "timed"


@pytest.mark.parametrize("by_name", [True, False])
def test_inputs_drawn_past_rand_are_told(sums, by_name):
    function, inputs = (sums.fast, sums.drawn_elsewhere) if by_name else (lambda x: x + 1, lambda rand: {"x": torch.randn(3)})
    with pytest.raises(
        BenchmarkError, match=r"^inputs gave 'x' other values for the same seed; expected it drawn with rand, as rand\.normal"
    ):
        measure(function, inputs=inputs, device="cpu")


def test_an_error_outside_the_default_tolerance_names_what_allows_for_rounding():
    helps = r"outside rtol=.*; these are the defaults: where the error is rounding, rtol= and atol= allow for it; the reference is "
    functions = lambda x: x.sum(dim=1), lambda x: x.sum(dim=1) * 1.00001
    with pytest.raises(NotMeasured, match=helps):
        compare(*functions, **DRAWN)
    with pytest.raises(NotMeasured) as caught:
        compare(*functions, rtol=1e-7, **DRAWN)
    assert "the defaults" not in caught.value.reason
    assert compare(*functions, rtol=1e-4, atol=1e-4, **DRAWN).how == "one process"


@pytest.mark.parametrize("by_name", [True, False])
def test_of_a_function_no_step_is_told(sums, by_name):
    second = sums.as_dict if by_name else lambda x: {"y": x.sum(dim=1)}
    with pytest.raises(NotMeasured, match=r"(as_dict|<lambda>).* returned a dict; expected 1 tensor: out") as caught:
        compare(sums.slow, second, inputs=sums.draw, device="cpu", rtol=1e-4, atol=1e-4)
    assert "step" not in caught.value.reason
