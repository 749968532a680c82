"""A measurement goes on for as long as more units would help, and no longer: on synthetic units."""

import math

import pytest

from common.python.gate.expectations import keep_expectations
from common.python.gate.noise_floor import Floor, Noise, StepClass, Trial
from common.python.gate.statistics import speedups_of
from common.python.measure.stopping import NOISY_PERCENT, PRECISE_PERCENT, StopRule
from common.python.results import StopReason
from common.python.settings import Settings
from tests.support.factories import a_provenance, an_expectation, recorded_ladder, recorded_units
from tests.support.plans import SHAPE, a_plan, standards_for


def stops(plan, units, *, unit_s=0.1, prepare_s=0.0, noise=None, is_held=True, limit_s=math.inf, **choices):
    """After how many of `units`, each of `unit_s`, a measurement of at most `limit_s` stops, and why; None if it goes on after the last."""
    standards = standards_for(plan, **choices)
    if noise:
        standards.noise = noise
    rule = StopRule(Settings(**choices), standards, plan, "default")
    for count in range(1, len(units) + 1):
        if reason := rule.reason(units[:count], count * unit_s, prepare_s, is_held=is_held, left_s=limit_s - count * unit_s):
            return count, reason
    return None


def a_noise(step=StepClass.LONG, percent=0.1, deviation=0.002):
    trial = Trial(target="noise:copy", logs=(0.0,) * 6)
    return Noise({step: Floor(percent=percent, deviation=deviation, degrees=50, trials=(trial,))})


@pytest.fixture
def expecting(tmp_path):
    keep_expectations(tmp_path / "expectations_h200.json", "transpose", {"default": an_expectation(2.0, shape=SHAPE)})
    return a_plan(tmp_path)


@pytest.mark.parametrize("ratio", [1.9, 2.0, 2.1])
def test_what_the_gate_can_decide_ends_at_the_first_look(expecting, ratio):
    assert stops(expecting, recorded_units(ratio, count=24)) == (6, StopReason.DECIDED)


def test_what_lies_at_the_edge_of_the_band_takes_all_units(expecting):
    assert stops(expecting, recorded_units(1.99, count=24)) == (24, StopReason.UNIT_CAP)


def test_what_was_accepted_on_another_gpu_is_decided_by_its_wider_band(tmp_path):
    elsewhere = an_expectation(2.0, shape=SHAPE, provenance=a_provenance(device="GPU-of-another-machine"))
    keep_expectations(tmp_path / "expectations_h200.json", "transpose", {"default": elsewhere})

    assert stops(a_plan(tmp_path), recorded_units(1.99, count=24)) == (6, StopReason.DECIDED)
    assert stops(a_plan(tmp_path), recorded_units(1.905, count=24)) == (24, StopReason.UNIT_CAP)


def test_it_is_looked_at_when_both_orders_are_equally_many(expecting):
    count, reason = stops(expecting, recorded_units(1.98, count=24, deviation=0.005, seed=1))

    assert reason is StopReason.DECIDED
    assert count > 6
    assert count % 2 == 0


def test_an_undecided_measurement_ends_when_its_time_is_up(expecting):
    edge = recorded_units(1.99, count=24)

    assert stops(expecting, edge, unit_s=1.7) == (6, StopReason.TIME_BUDGET)
    assert stops(expecting, edge, unit_s=0.4) == (24, StopReason.UNIT_CAP)


@pytest.mark.parametrize(("unit_s", "count"), [(1.23, 6), (1.22, 8), (0.97, 10), (0.82, 10), (0.81, 12)])
def test_no_units_are_begun_that_would_end_too_late(expecting, unit_s, count):
    assert stops(expecting, recorded_units(1.99, count=24), unit_s=unit_s) == (count, StopReason.TIME_BUDGET)


def test_without_expectations_a_narrow_interval_is_enough(tmp_path):
    plan = a_plan(tmp_path)

    assert stops(plan, recorded_units(2.0, count=24, deviation=0.001)) == (6, StopReason.PRECISE)
    assert stops(plan, recorded_units(2.0, count=24, deviation=0.02)) == (24, StopReason.UNIT_CAP)


def test_a_noisy_class_of_steps_need_not_become_narrower_than_its_floor(tmp_path):
    plan = a_plan(tmp_path)
    units = recorded_units(2.0, 9_000.0, count=6, deviation=0.006, seed=2)
    half_width = speedups_of(units)["optimized"].half_width_percent

    assert PRECISE_PERCENT < half_width < NOISY_PERCENT[StepClass.SHORT]
    assert stops(plan, units) == (6, StopReason.PRECISE)
    assert stops(plan, units, noise=a_noise(StepClass.SHORT, 0.9 * half_width)) is None
    assert stops(plan, units, noise=a_noise(StepClass.SHORT, 1.1 * half_width)) == (6, StopReason.PRECISE)


def test_a_dear_set_up_may_stop_at_two_units_where_the_spread_between_processes_is_known(expecting):
    units = recorded_units(1.9, count=24)

    assert stops(expecting, units, prepare_s=3.0, noise=a_noise(deviation=0.01)) == (2, StopReason.DECIDED)
    assert stops(expecting, units, prepare_s=3.0) == (6, StopReason.DECIDED)
    assert stops(expecting, units, prepare_s=1.0, noise=a_noise()) == (6, StopReason.DECIDED)


@pytest.mark.parametrize(
    ("count", "prepare_s", "noise", "choices", "more"),
    [
        (0, 3.0, None, {}, 6),
        (1, 3.0, None, {}, 5),
        (1, 3.0, a_noise(), {}, 1),  # two units may be enough
        (2, 3.0, a_noise(), {}, 2),
        (2, 3.0, a_noise(StepClass.SHORT), {}, 4),  # of steps like these nothing is known
        (1, 1.0, a_noise(), {}, 5),
        (1, 3.0, a_noise(), {"accept_regressions": True}, 5),
        (1, 3.0, a_noise(), {"iterations": 4}, 5),
        (6, 3.0, None, {}, 2),
        (9, 3.0, None, {}, 1),
    ],
)
def test_units_that_are_certain_to_come_are_known_ahead(expecting, count, prepare_s, noise, choices, more):
    standards = standards_for(expecting, **choices)
    standards.noise = noise or Noise({})

    assert StopRule(Settings(**choices), standards, expecting, "default").units_to_go(recorded_units(1.9, count=count), prepare_s) == more


def test_what_compiled_sides_take_to_load_makes_them_dear_and_counts_as_time(expecting):
    standards = standards_for(expecting)
    standards.noise = a_noise(deviation=0.01)
    rule, edge = StopRule(Settings(), standards, expecting, "default"), recorded_units(1.99, count=6)

    assert rule.reason(edge[:2], 16.0, 0.0, load_s=7.0, is_held=True) is StopReason.TIME_BUDGET
    assert rule.reason(edge[:2], 16.0, 0.0, load_s=1.0, is_held=True) is None
    assert rule.reason(edge, 48.0, 0.0, load_s=7.0, is_held=True) is StopReason.TIME_BUDGET


def test_a_dear_set_up_goes_on_where_two_units_say_too_little(expecting):
    assert stops(expecting, recorded_units(1.99, count=4), prepare_s=3.0, noise=a_noise()) is None


def test_accepting_takes_ten_units_and_half_the_band(expecting):
    calm, wild = (recorded_units(2.0, count=24, deviation=deviation) for deviation in (0.001, 0.02))

    assert stops(expecting, calm, accept_regressions=True) == (10, StopReason.PRECISE)
    assert stops(expecting, wild, accept_regressions=True) == (24, StopReason.UNIT_CAP)


@pytest.mark.parametrize(("unit_s", "prepare_s"), [(7.0, 0.0), (2.0, 5.0)])
def test_accepting_a_dear_row_ends_once_it_may_be_accepted_as_it_is(expecting, unit_s, prepare_s):
    calm, wild = (recorded_units(2.0, count=24, deviation=deviation) for deviation in (0.01, 0.1))
    dear = {"unit_s": unit_s, "prepare_s": prepare_s, "accept_regressions": True}

    assert stops(expecting, calm, **dear) == (6, StopReason.TIME_BUDGET)
    assert stops(expecting, wild, **dear) == (24, StopReason.UNIT_CAP)


@pytest.mark.parametrize(("is_held", "found"), [(False, (6, StopReason.TIME_BUDGET)), (True, (24, StopReason.UNIT_CAP))])
def test_accepting_what_a_host_paces_ends_at_a_wider_interval(tmp_path, is_held, found):
    wild = recorded_units(2.0, count=24, deviation=0.1)

    assert stops(a_plan(tmp_path), wild, unit_s=7.0, accept_regressions=True, is_held=is_held) == found


@pytest.mark.parametrize(("limit_s", "found"), [(240.0, (6, StopReason.TIME_BUDGET)), (360.0, (10, StopReason.TIME_BUDGET))])
def test_accepting_what_stays_too_wide_ends_before_the_limit_would_take_its_units(tmp_path, limit_s, found):
    wild = recorded_units(2.0, count=24, deviation=0.5)

    assert stops(a_plan(tmp_path), wild, unit_s=30.0, limit_s=limit_s, accept_regressions=True, is_held=False) == found
    assert stops(a_plan(tmp_path), wild, unit_s=3.0, limit_s=limit_s, accept_regressions=True, is_held=False) == (24, StopReason.UNIT_CAP)


def wild_units():
    return recorded_units(2.0, count=24)


def wild_gains(deviation):
    """Of 24 units, in turn above and below 2 by that much."""
    return [2.0 * math.exp(deviation * (-1) ** number) for number in range(24)]


@pytest.mark.parametrize(("goal", "deviation", "found"), [("setup", 0.1, 6), ("setup", 0.5, 24), ("memory", 0.1, 24)])
def test_accepting_a_cold_start_of_half_a_minute_ends_at_the_interval_of_what_a_host_paces(tmp_path, goal, deviation, found):
    units = [unit.model_copy(update={"gains": {"optimized": gain}}) for unit, gain in zip(wild_units(), wild_gains(deviation), strict=True)]

    count, _ = stops(a_plan(tmp_path, goal=goal), units, unit_s=35.0, accept_regressions=True)
    assert count == found


@pytest.mark.parametrize("choices", [{"iterations": 3}, {"cold_start": True}])
def test_a_fixed_number_of_calls_leaves_nothing_to_decide(expecting, choices):
    assert stops(expecting, recorded_units(1.9, count=24, deviation=0.1), **choices) == (6, StopReason.FIXED)


def test_a_half_stops_when_its_own_time_is_known(tmp_path):
    plan = a_plan(tmp_path, sides=("optimized",))
    units = recorded_units(2.0, count=24)
    alone = tuple(unit.model_copy(update={"blocks": {"optimized": unit.blocks["optimized"]}}) for unit in units)

    count, reason = stops(plan, alone)
    assert reason is StopReason.PRECISE
    assert count < 24


LADDER_NS = {"baseline": 80_000.0, "tiled": 60_000.0, "optimized": 40_000.0}


@pytest.fixture
def ladder_stops(tmp_path):
    """After how many units a ladder stops, and why, if one of its sides became slower by so many percent."""
    expected = an_expectation(units=recorded_ladder(LADDER_NS, count=24, deviation=0.001, seed=1), shape=SHAPE)
    keep_expectations(tmp_path / "expectations_h200.json", "transpose", {"default": expected})
    plan = a_plan(tmp_path, sides=tuple(LADDER_NS))

    def stopped(side="tiled", percent=0.0, deviation=0.001, **choices):
        times = LADDER_NS | {side: LADDER_NS[side] * (1 + percent / 100)}
        return stops(plan, recorded_ladder(times, count=24, deviation=deviation, seed=2), **choices)

    return stopped


@pytest.mark.parametrize("percent", [0.0, 3.0, -3.0])
def test_a_ladder_ends_when_its_speedup_and_every_rung_are_decided(ladder_stops, percent):
    assert ladder_stops("tiled", percent) == (6, StopReason.DECIDED)


def test_a_rung_that_may_yet_be_decided_keeps_its_ladder_going(ladder_stops):
    count, reason = ladder_stops("tiled", 0.9, deviation=0.002)

    assert reason is StopReason.DECIDED
    assert count > 6


def test_a_rung_that_is_not_worse_keeps_no_ladder_going_to_learn_whether_it_is_better(ladder_stops):
    assert ladder_stops("tiled", -0.5) == (6, StopReason.DECIDED)
    assert ladder_stops("optimized", -0.5) == (24, StopReason.UNIT_CAP)


def test_a_rung_that_no_unit_to_come_is_foreseen_to_decide_ends_its_ladder_undecided(ladder_stops):
    assert ladder_stops("tiled", 0.5) == (6, StopReason.UNIT_CAP)
    assert ladder_stops("optimized", 0.5) == (24, StopReason.UNIT_CAP)


def test_units_that_there_is_no_time_for_are_not_foreseen(ladder_stops):
    undecided = {"side": "tiled", "percent": 0.9, "deviation": 0.002}

    assert ladder_stops(**undecided, unit_s=1.75) == (8, StopReason.TIME_BUDGET)  # of 15 s; at six units the speedup is undecided
    assert ladder_stops(**undecided, unit_s=0.2)[1] is StopReason.DECIDED


def test_accepting_goes_on_until_what_every_rung_is_gated_by_is_narrow(tmp_path):
    plan = a_plan(tmp_path, sides=tuple(LADDER_NS))
    calm = recorded_ladder(LADDER_NS, count=24, deviation=0.001)
    wild = recorded_ladder({"tiled": 60_000.0}, count=24, deviation=0.02)
    units = [unit.model_copy(update={"blocks": unit.blocks | other.blocks}) for unit, other in zip(calm, wild, strict=True)]

    assert stops(plan, calm, accept_regressions=True) == (10, StopReason.PRECISE)
    assert stops(plan, units, accept_regressions=True) == (24, StopReason.UNIT_CAP)
