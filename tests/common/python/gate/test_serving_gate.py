"""A serving row is gated by its goal, at the load that was accepted, within a band of its own."""

import pytest

from common.python.gate.expectations import expectation_of, expectations_path, keep_expectations, ratio_of
from common.python.gate.noise_floor import StepClass
from common.python.gate.predicted import terms_of_timing
from common.python.gate.statistics import gains_of
from common.python.measure.stopping import FEW_UNITS, StopRule
from common.python.pairs.predictions import predictions_of
from common.python.results import ServingFigures, VerdictKind
from common.python.settings import Settings
from tests.support.factories import a_provenance, a_recorded_timing, a_row, an_interval, recorded_units
from tests.support.plans import a_plan, standards_for

SERVED = ServingFigures(
    slo_ttft_ms=100.0,
    slo_tpot_ms=10.0,
    figures={
        "baseline": {"ttft_ms.p95": an_interval(80.0, 1.0), "tpot_ms.p50": an_interval(4.0, 0.1)},
        "optimized": {"ttft_ms.p95": an_interval(40.0, 1.0), "tpot_ms.p50": an_interval(5.0, 0.1)},
    },
    offered_per_s=16.0,
    saturation_per_s=20.0,
)


def served_units(gain, *, count=10, seed=0):
    """Units whose traces are as long on both sides, and whose goal is `gain` times better, up to noise."""
    ratios = recorded_units(gain, count=count, deviation=0.01, seed=seed)
    gains = [unit.blocks["baseline"][0].samples_ns[0] / unit.blocks["optimized"][0].samples_ns[0] for unit in ratios]
    alike = recorded_units(1.0, count=count, deviation=0.001, seed=seed)
    return tuple(unit.model_copy(update={"gains": {"optimized": gain}}) for unit, gain in zip(alike, gains, strict=True))


def a_served_timing(gain, **choices):
    units = served_units(gain, **choices)
    return a_recorded_timing(units=units, goal="ttft_ms.p95", gains=gains_of(units), clock="host", cache="hot", serving=SERVED)


def a_serving_plan(folder, **changes):
    return a_plan(folder, goal="ttft_ms.p95", clock="host", cache="hot", serving=True, **changes)


@pytest.fixture
def accepted(tmp_path):
    """A plan of which a gain of 2 at a saturation of 20 requests/s is expected."""
    timing = a_served_timing(2.0)
    row = a_row(timings={"default": timing})
    expectation = expectation_of(row, timing, ratio_of(timing), a_provenance(device="GPU-of-a-test"))
    plan = a_serving_plan(tmp_path)
    keep_expectations(expectations_path(tmp_path, "h200"), "transpose", {"default": expectation})
    return plan


@pytest.mark.parametrize(
    ("gain", "kind"), [(2.0, VerdictKind.SAME), (1.9, VerdictKind.SAME), (1.5, VerdictKind.REGRESSED), (2.6, VerdictKind.IMPROVED)]
)
def test_the_goal_is_gated_whatever_the_traces_length(gain, kind, accepted):
    verdict = standards_for(accepted).verdict(accepted, "default", a_served_timing(gain, seed=5))
    assert verdict.kind is kind, verdict.sentence
    assert "ttft_ms.p95" in verdict.changes


def test_the_saturation_that_was_accepted_is_offered_again(accepted, tmp_path):
    assert standards_for(accepted).saturation_per_s(accepted, "default") == 20.0
    elsewhere = a_serving_plan(tmp_path, timed={"default": {"n": 3}})
    assert standards_for(elsewhere).saturation_per_s(elsewhere, "default") == 0.0
    assert standards_for(accepted, accept_regressions=True).saturation_per_s(accepted, "default") == 0.0
    unknown = a_serving_plan(tmp_path / "empty")
    assert standards_for(unknown).saturation_per_s(unknown, "default") == 0.0


def test_served_figures_have_a_band_and_a_class_of_their_own(tmp_path):
    plan = a_serving_plan(tmp_path)
    allowance = standards_for(plan).allowance(plan, served_units(2.0))
    assert (allowance.step, allowance.band_percent) == (StepClass.SERVING, 10.0)


def test_a_serving_row_stops_once_its_goal_is_precise(tmp_path):
    plan = a_serving_plan(tmp_path)
    rule = StopRule(Settings(), standards_for(plan), plan, "default")
    units = served_units(2.0, count=24)
    assert rule.reason(units[: FEW_UNITS - 1], 5.0, 0.1, is_held=True) is None
    assert any(rule.reason(units[:count], 5.0, 0.1, is_held=True) for count in range(FEW_UNITS, 13))


def test_any_figure_of_served_requests_can_be_predicted(tmp_path):
    plan = a_serving_plan(tmp_path)
    pair = plan.selection.pair
    pair.workload.write_text(
        '"""Serving."""\n\n# predicts: baseline ttft_ms.p95 80 ms = 2 * 40e-3\n# predicts: optimized tpot_ms 4 ms = 4e-3\n'
    )
    for side in pair.sides.values():
        side.write_text('"""A side."""\n')
    row = a_row(timings={"default": a_served_timing(2.0)})
    terms = terms_of_timing(row, "default", predictions_of(pair.workload, pair.sides), "NVIDIA H200", None)
    found = {term.subject: (term.measured, term.missed) for term in terms}
    assert found["baseline ttft_ms.p95"] == (pytest.approx(0.08), False)
    assert found["optimized tpot_ms"] == (pytest.approx(0.005), False)
