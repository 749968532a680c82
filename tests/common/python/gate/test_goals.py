"""Bytes, errors and joules are gated, accepted and predicted by the rules of a speedup, each with the band that is its own."""

import pytest

from common.python.gate.expectations import expectation_of, expectations_path, keep_expectations, refusal
from common.python.gate.predicted import predicted_lines, terms_of_timing
from common.python.gate.statistics import figures_of, gains_of
from common.python.pairs.predictions import card_of, predictions_in
from common.python.results import VerdictKind
from tests.support.factories import a_provenance, a_recorded_timing, a_row, a_side, recorded_units
from tests.support.plans import a_plan, standards_for

UNITS = {"memory": "bytes", "accuracy": "relative error", "energy": "J"}


def a_goal_timing(goal, baseline=3e9, optimized=1e9, *, ratio=1.0, count=10):
    """Units whose figures are the same in each, as bytes are, and whose times make a speedup of `ratio`."""
    figures = {"baseline": baseline, "optimized": optimized}
    gains = {"optimized": baseline / optimized}
    units = tuple(unit.model_copy(update={"figures": figures, "gains": gains}) for unit in recorded_units(ratio, count=count))
    told = {"figures": figures_of(units), "gains": gains_of(units), "unit": UNITS[goal], "goal": goal}
    return a_recorded_timing(units=units, **told)


def verdict_on(folder, goal, accepted, found):
    plan = a_plan(folder, goal=goal)
    expected = expectation_of(a_row(timings={"default": accepted}), accepted, accepted.gains["optimized"], a_provenance())
    keep_expectations(expectations_path(folder, "h200"), "transpose", {"default": expected})
    return standards_for(plan).verdict(plan, "default", found)


@pytest.mark.parametrize(
    ("goal", "bytes_now", "kind"),
    [
        ("memory", 1e9, VerdictKind.SAME),
        ("memory", 1.02e9, VerdictKind.REGRESSED),
        ("memory", 0.98e9, VerdictKind.IMPROVED),
        ("accuracy", 1.02e9, VerdictKind.REGRESSED),
        ("energy", 1.02e9, VerdictKind.SAME),  # joules have a wider band
        ("energy", 1.2e9, VerdictKind.REGRESSED),
    ],
)
def test_a_figure_is_gated_and_a_slower_pair_of_sides_is_not(tmp_path, goal, bytes_now, kind):
    accepted, found = a_goal_timing(goal), a_goal_timing(goal, optimized=bytes_now)
    verdict = verdict_on(tmp_path, goal, accepted, found)

    assert verdict.kind is kind
    assert verdict.sentence.startswith(goal)


def test_times_beside_a_memory_row_may_be_anything(tmp_path):
    assert verdict_on(tmp_path, "memory", a_goal_timing("memory"), a_goal_timing("memory", ratio=0.5)).kind is VerdictKind.SAME


@pytest.mark.parametrize(("ratio", "kind"), [(0.9, VerdictKind.REGRESSED), (1.0, VerdictKind.SAME), (1.5, VerdictKind.SAME)])
def test_an_accuracy_counts_at_equal_speed_alone(tmp_path, ratio, kind):
    accepted, found = a_goal_timing("accuracy"), a_goal_timing("accuracy", ratio=ratio)

    assert verdict_on(tmp_path, "accuracy", accepted, found).kind is kind
    refused = "% slower; expected at most 3 %, as accuracy is compared at equal speed"
    assert refusal(found, 0.5).endswith(refused) is (ratio < 1)


def test_an_accepted_figure_keeps_its_unit():
    timing = a_goal_timing("memory")
    kept = expectation_of(a_row(timings={"default": timing}), timing, timing.gains["optimized"], a_provenance())

    assert (kept.goal, kept.unit, kept.sides["optimized"].figure.estimate) == ("memory", "bytes", pytest.approx(1e9))


PREDICTED = """\
# predicts: baseline 3 GB = 3e9
# predicts: optimized 2 GB = 2e9  (twice what it came to)
"""


def test_a_prediction_in_bytes_alone_is_of_the_peak(tmp_path):
    path = tmp_path / "optimized_transpose.py"
    predictions = predictions_in(path, PREDICTED)
    sides = {side: a_side(side, peak_memory_bytes=count) for side, count in (("baseline", 3 * 10**9), ("optimized", 10**9))}
    row = a_row(timings={"default": a_goal_timing("memory")}, sides=sides)
    terms = terms_of_timing(row, "default", predictions, "NVIDIA H200", card_of("h200"))

    assert predicted_lines(row.model_copy(update={"predictions": {"default": terms}})) == [
        "baseline peak_bytes: predicted 3 GB, measured 3 GB: hit",
        "optimized peak_bytes: predicted 2 GB, measured 1 GB: missed, 0.50 times what was predicted",
        "peak_bytes, baseline over optimized: predicted 1.5x, measured 3x: missed, 2.00 times what was predicted",
    ]


def test_errors_and_joules_are_predicted_by_name_or_unit(tmp_path):
    text = "# predicts: optimized error 0.02 = 2**-5 * 0.64\n# predicts: optimized 5 mJ = 5e-3\n"
    (error, joules), _ = predictions_in(tmp_path / "optimized_transpose.py", text)

    assert (error.figure, error.value, error.unit) == ("error", 0.02, "")
    assert (joules.figure, joules.value, joules.unit) == ("joules", 0.005, "J")
    timing = a_goal_timing("accuracy", 0.06, 0.02)
    (term,) = terms_of_timing(a_row(timings={"default": timing}), "default", ((error,), None), "NVIDIA H200", card_of("h200"))
    assert (term.measured, term.missed) == (pytest.approx(0.02), False)
