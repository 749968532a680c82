"""Intervals hold the truth as often as they say, and are what a textbook says they are."""

import math

import numpy as np
import pytest
from scipy import stats as textbook

from common.python.gate.statistics import geometric_interval, median_ns, rungs_of, speedups_of, t_quantile, times_of
from common.python.pairs.goals import TIME
from common.python.results import Block, Unit


@pytest.mark.parametrize("degrees", [1, 5, 23])
def test_the_quantile_is_students(degrees):
    assert t_quantile(degrees, 0.975) == pytest.approx(textbook.t.ppf(0.975, degrees), rel=1e-12)


def test_the_interval_is_students_on_logarithms():
    ratios = [1.9, 2.0, 2.2, 2.1, 1.8, 2.05]
    logs = np.log(ratios)
    low, high = textbook.t.interval(0.95, len(logs) - 1, loc=logs.mean(), scale=textbook.sem(logs))
    interval = geometric_interval(ratios)
    assert interval.estimate == pytest.approx(textbook.gmean(ratios))
    assert (interval.low, interval.high) == pytest.approx((math.exp(low), math.exp(high)))


@pytest.mark.parametrize("units", [2, 6, 24])
def test_a_nominal_95_percent_interval_covers_the_truth_95_percent_of_the_time(units):
    draws = np.exp(np.random.default_rng(units).normal(math.log(1.7), 0.05, size=(4000, units)))
    intervals = [geometric_interval(ratios) for ratios in draws.tolist()]
    covered = sum(interval.low <= 1.7 <= interval.high for interval in intervals) / len(intervals)
    assert 0.93 <= covered <= 0.97


def test_the_interval_of_the_inverse_is_the_inverse_interval():
    ratios = [1.9, 2.0, 2.2]
    interval, inverse = geometric_interval(ratios), geometric_interval([1 / ratio for ratio in ratios])
    assert (1 / inverse.high, 1 / inverse.estimate, 1 / inverse.low) == pytest.approx((interval.low, interval.estimate, interval.high))


def test_equal_values_leave_no_width():
    interval = geometric_interval([3.0] * 6)
    assert interval.low == interval.estimate == interval.high == pytest.approx(3.0)


def a_unit(**samples_ns):
    blocks = {
        side: (Block(seed=1, samples_ns=tuple(values[:2])), Block(seed=3, samples_ns=tuple(values[2:])))
        for side, values in samples_ns.items()
    }
    return Unit(order=tuple(samples_ns), blocks=blocks)


def test_a_faster_side_has_a_speedup_above_one_over_the_baseline():
    units = [a_unit(baseline=[8.0, 8.0, 8.0], optimized=[2.0, 2.0, 2.0], library=[16.0, 16.0, 16.0]) for _ in range(6)]
    assert {side: speedup.estimate for side, speedup in speedups_of(units).items()} == pytest.approx({"library": 0.5, "optimized": 4.0})


def test_a_units_time_is_the_median_over_its_blocks_which_one_slow_call_does_not_move():
    assert median_ns(a_unit(baseline=[1.0, 3.0, 1e9]), "baseline") == 3.0
    units = [a_unit(baseline=[2.0, 2.0, 1e9]), a_unit(baseline=[8.0, 8.0, 8.0])]
    assert times_of(units)["baseline"].estimate == pytest.approx(4.0)


def test_what_differs_between_processes_alike_for_both_sides_leaves_the_speedup_as_it_is():
    """Why sides are paired: a process that is slow as a whole is slow for both."""
    units = [a_unit(baseline=[8.0 * slow] * 3, optimized=[4.0 * slow] * 3) for slow in (1.0, 1.5, 2.0)]
    speedup = speedups_of(units)["optimized"]
    assert speedup.low == pytest.approx(speedup.high) == pytest.approx(2.0)


LADDER = ("baseline", "tiled", "optimized", "library")


def test_each_side_of_a_ladder_is_compared_with_the_one_before_it_in_the_same_processes():
    units = [a_unit(baseline=[8.0 * s] * 3, tiled=[4.0 * s] * 3, optimized=[1.0 * s] * 3, library=[9.0] * 3) for s in (1.0, 1.5, 2.0)]
    rungs = rungs_of(units, LADDER, TIME)
    assert list(rungs) == ["tiled", "optimized"]
    assert [(rung.low, rung.estimate, rung.high) for rung in rungs.values()] == [pytest.approx((ratio,) * 3) for ratio in (2.0, 4.0)]


@pytest.mark.parametrize("sides", [("baseline", "optimized", "library"), ("optimized",), ("baseline",)])
def test_neither_a_pair_nor_a_half_is_a_ladder(sides):
    units = [a_unit(**{side: [1.0, 1.0, 1.0] for side in sides})] * 6
    assert rungs_of(units, sides, TIME) == {}


def test_the_rungs_of_another_goal_are_its_own_and_all_or_none():
    units = [a_unit(baseline=[1.0] * 3).model_copy(update={"gains": {"tiled": 2.0, "optimized": 3.0}})] * 6
    assert [rung.estimate for rung in rungs_of(units, LADDER, "memory").values()] == pytest.approx([2.0, 1.5])
    partly = [*units, units[0].model_copy(update={"gains": {"optimized": 3.0}})]
    assert rungs_of(partly, LADDER, "memory") == {}


def test_a_half_has_no_speedup():
    assert speedups_of([a_unit(optimized=[1.0, 1.0, 1.0])] * 6) == {}
