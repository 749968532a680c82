"""Intervals hold the truth as often as they say, and are what a textbook says they are."""

import math

import numpy as np
import pytest
from scipy import stats as textbook

from common.python.stats import geometric_interval, t_quantile


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
