"""The figure of a side at a goal other than time, and how many times better than the baseline's it is."""

import pytest

from common.python.measure.goal_figures import better_of, error_of, figures_for, gains_from, unit_of
from common.python.results import Check, OutputError, ReportedMetric


def a_check(**errors):
    outputs = {name: OutputError(max_abs=9.0, max_rel=9.0, mismatched=0.0, rms_rel=error) for name, error in errors.items()}
    return Check(shape={"n": 1}, seed=1, timed_call=True, outputs=outputs)


KNOWN = {
    "peaks": {"baseline": 300, "optimized": 100},
    "checks": {"baseline": [a_check(y=0.02), a_check(y=0.04)], "optimized": [a_check(y=0.001, z=0.01)]},
    "joules": {"baseline": 2.0, "optimized": 1.0},
    "metrics": {
        side: {"tokens": ReportedMetric(value=value, unit="1/s", better="higher")} for side, value in (("baseline", 5), ("optimized", 9))
    },
}


@pytest.mark.parametrize(
    ("goal", "figures", "unit", "gain"),
    [
        ("memory", {"baseline": 300, "optimized": 100}, "bytes", 3.0),
        ("accuracy", {"baseline": 0.03, "optimized": 0.01}, "relative error", 3.0),  # over calls the mean, over outputs the largest
        ("energy", {"baseline": 2.0, "optimized": 1.0}, "J", 2.0),
        ("tokens", {"baseline": 5, "optimized": 9}, "1/s", 1.8),
    ],
)
def test_each_goal_has_its_figure(goal, figures, unit, gain):
    found = figures_for(goal, **KNOWN)

    assert found == pytest.approx(figures)
    assert unit_of(goal, KNOWN["metrics"]) == unit
    assert gains_from(found, better_of(goal, KNOWN["metrics"])) == {"optimized": pytest.approx(gain)}


def test_a_figure_of_which_neither_way_is_better_is_no_gain():
    metrics = {
        side: {"budget": ReportedMetric(value=value, unit="tokens", better="neither")}
        for side, value in (("baseline", 5), ("optimized", 9))
    }
    found = figures_for("budget", **KNOWN | {"metrics": metrics})
    assert found == {"baseline": 5, "optimized": 9}
    assert gains_from(found, better_of("budget", metrics)) == {}


@pytest.mark.parametrize("goal", ["time", "setup", "nobody"])
def test_time_set_up_and_what_nobody_reports_have_none(goal):
    assert figures_for(goal, **KNOWN) == {}


def test_an_error_that_nobody_knows_is_none_and_no_error_is_no_gain():
    assert error_of(a_check(y=None)) is None
    assert figures_for("accuracy", **KNOWN | {"checks": {"baseline": [a_check(y=None)]}}) == {}
    assert gains_from({"baseline": 0.1, "optimized": 0.0}) == {}
    assert gains_from({"optimized": 0.1}) == {}
