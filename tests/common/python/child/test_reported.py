"""Figures that are reported are numbers with a unit and a better way, or one sentence says what was found."""

import math
import re

import pytest
import torch

from common import Metric
from common.python.child.reported import metrics_of, reported_of
from common.python.errors import BenchmarkError

WRONG = {
    "m: found a list; expected a dict of names to Metric": [Metric(1.0, "x", "higher")],
    "m: q: found a float; expected a Metric(value, unit, better)": {"q": 1.0},
    "m: q: better='sideways'; expected higher or lower or neither": {"q": Metric(1.0, "x", "sideways")},
    "m: q: unit=None; expected a text": {"q": Metric(1.0, None, "lower")},
    "m: q: value='many'; expected a number": {"q": Metric("many", "x", "lower")},
    "m: q: value=tensor([0., 0.]); expected a number": {"q": Metric(torch.zeros(2), "x", "lower")},
}


@pytest.mark.parametrize(("told", "metrics"), WRONG.items())
def test_what_is_no_figure_is_one_sentence(told, metrics):
    for read in (metrics_of, reported_of):
        with pytest.raises(BenchmarkError, match=f"^{re.escape(told)}$"):
            read(metrics, "m")


def test_a_figure_may_have_no_better_way():
    (kept,) = reported_of({"budget": Metric(512, "tokens", "neither")}, "m").values()
    assert (kept.value, kept.better) == (512.0, "neither")


def test_a_figure_is_kept_as_a_float_and_must_be_finite_only_to_be_kept():
    (kept,) = reported_of({"q": Metric(torch.tensor(2), "tokens", "higher")}, "m").values()
    assert (kept.value, kept.unit, kept.better, kept.self_reported) == (2.0, "tokens", "higher", True)
    never = {"q": Metric(math.inf, "us", "lower")}
    assert metrics_of(never, "m")["q"].value == math.inf
    with pytest.raises(BenchmarkError, match=r"^m: q: value=inf; expected a finite number$"):
        reported_of(never, "m")
