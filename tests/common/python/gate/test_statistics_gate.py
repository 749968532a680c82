"""The gate tells 1 % from nothing as often as it says, and is Welch's test; error rates by simulation with fixed seeds."""

import math

import numpy as np
import pytest
from scipy import stats as textbook

from common.python.gate.statistics import (
    LEAST_UNITS,
    LOOK_CONFIDENCE,
    LOOK_EVERY,
    MOST_UNITS,
    NO_CHANGE,
    Difference,
    Known,
    Mean,
    change_in_all,
    discoveries,
    may_be_worse,
    units_needed,
)
from common.python.results import VerdictKind

BAND = 0.5


def logs_of(percent, deviation, count, seed=0):
    """Simulated log ratios: a mean change in percent, and the deviation of a unit in percent."""
    return np.random.default_rng(seed).normal(math.log1p(percent / 100), deviation / 100, count).tolist()


def decided(measured, expected=NO_CHANGE):
    """What a measurement that stops at the first look which decides comes to, and after how many units."""
    for units in range(LEAST_UNITS, MOST_UNITS + 1, LOOK_EVERY):
        change = Difference.between(Mean.of(measured[:units]), expected).change(BAND)
        if change.kind is not VerdictKind.INCONCLUSIVE:
            break
    return change.kind, units


def shares(percent, deviation, *, stored, trials=500):
    """Shares of verdicts over simulated measurements against `stored` units, or against no change."""
    draws = np.random.default_rng(1).normal(0.0, deviation / 100, (trials, MOST_UNITS + stored))
    kinds = []
    for row in draws.tolist():
        measured = [log + math.log1p(percent / 100) for log in row[:MOST_UNITS]]
        kinds.append(decided(measured, Mean.of(row[MOST_UNITS:]) if stored else NO_CHANGE)[0])
    return {kind: kinds.count(kind) / trials for kind in VerdictKind}


def test_the_difference_is_welchs():
    measured, expected = logs_of(1, 0.3, 9, seed=1), logs_of(0, 0.8, 24, seed=2)
    difference = Difference.between(Mean.of(measured), Mean.of(expected))
    low, high = textbook.ttest_ind(measured, expected, equal_var=False).confidence_interval(LOOK_CONFIDENCE)

    assert (difference.value - difference.half_width, difference.value + difference.half_width) == pytest.approx((low, high))
    beyond = textbook.ttest_ind([log + math.log1p(BAND / 100) for log in measured], expected, equal_var=False, alternative="less")
    assert difference.change(BAND).p_worse == pytest.approx(beyond.pvalue)


@pytest.mark.parametrize(("deviation", "caught"), [(0.25, 0.99), (0.45, 0.88)])
def test_a_planted_percent_is_caught(deviation, caught):
    assert shares(-1.0, deviation, stored=24)[VerdictKind.REGRESSED] >= caught
    assert shares(-1.0, deviation, stored=0)[VerdictKind.REGRESSED] >= 0.98


@pytest.mark.parametrize("deviation", [0.25, 0.45])
@pytest.mark.parametrize("stored", [24, 0])
def test_no_change_is_never_red_nor_green(deviation, stored):
    found = shares(0.0, deviation, stored=stored)

    assert found[VerdictKind.REGRESSED] == found[VerdictKind.IMPROVED] == 0.0
    assert found[VerdictKind.SAME] >= (0.99 if deviation < 0.3 else 0.75)


@pytest.mark.parametrize("stored", [24, 0])
def test_all_looks_together_keep_95_percent_at_the_edge_of_the_band(stored):
    found = shares(-100 * BAND / (100 + BAND), 0.35, stored=stored, trials=2000)

    # 2.5 % on either side; three standard errors of 2000 trials above that
    assert found[VerdictKind.REGRESSED] < 0.025 + 0.0105
    assert found[VerdictKind.SAME] < 0.025 + 0.0105


def test_three_percent_is_decided_at_the_first_look():
    assert decided(logs_of(-3, 0.25, 24), Mean.of(logs_of(0, 0.25, 24, seed=9))) == (VerdictKind.REGRESSED, LEAST_UNITS)
    assert decided(logs_of(3, 0.25, 24), Mean.of(logs_of(0, 0.25, 24, seed=9))) == (VerdictKind.IMPROVED, LEAST_UNITS)


def test_units_that_are_all_alike_decide_without_dividing_by_their_spread():
    same, worse = (Difference.between(Mean.of([log] * 6), NO_CHANGE).change(BAND) for log in (0.0, -0.01))

    assert (same.kind, same.p_worse) == (VerdictKind.SAME, 1.0)
    assert (worse.kind, worse.p_worse) == (VerdictKind.REGRESSED, 0.0)


def test_a_spread_that_is_known_lets_two_units_decide_and_never_narrows_what_is_seen():
    calm, wild = [0.032, 0.028], [0.10, -0.04]

    assert Difference.between(Mean.of(calm), NO_CHANGE).change(BAND).kind is VerdictKind.INCONCLUSIVE
    assert Difference.between(Mean.of(calm, Known(0.003, 40)), NO_CHANGE).change(BAND).kind is VerdictKind.IMPROVED
    assert Mean.of(wild, Known(0.003, 40)) == Mean.of(wild)


def test_the_units_still_needed_are_about_those_that_then_decide():
    logs = logs_of(-0.75, 0.45, 200, seed=4)
    more = units_needed([(logs[:8], NO_CHANGE)], BAND)

    assert more is not None
    after = Difference.between(Mean.of(logs_of(-0.75, 0.45, 4000, seed=4)[: 8 + more]), NO_CHANGE)
    assert after.half_width == pytest.approx(math.log1p(0.0025), rel=0.6)


def test_no_number_of_units_decides_at_the_very_edge_or_against_too_few_stored_ones():
    edge = [-math.log1p(BAND / 100) + step for step in (-0.002, 0.002)] * 3

    assert units_needed([(edge, NO_CHANGE)], BAND) is None
    assert units_needed([(logs_of(0, 0.3, 8), Mean.of([0.02, -0.02, 0.0]))], BAND) is None


def test_only_units_that_there_may_be_are_foreseen():
    logs = logs_of(-0.75, 0.45, 200, seed=4)[:8]
    more = units_needed([(logs, NO_CHANGE)], BAND)

    assert more is not None
    assert units_needed([(logs, NO_CHANGE)], BAND, most=8 + more) == more
    assert units_needed([(logs, NO_CHANGE)], BAND, most=8 + more - LOOK_EVERY) is None


def seen(*percents, half_width=0.2):
    """What differences of these sizes make of one change, each with an interval of this half-width, all in percent."""
    degrees = 20.0
    error = math.log1p(half_width / 100) / textbook.t.ppf(0.5 + LOOK_CONFIDENCE / 2, degrees)
    return change_in_all([Difference(math.log1p(percent / 100), error, degrees) for percent in percents], BAND)


@pytest.mark.parametrize(
    ("percents", "kind", "estimate"),
    [
        ((-3.0, -2.0), "REGRESSED", -2.0),
        ((2.0, 3.0), "IMPROVED", 2.0),
        ((-3.0, 0.1), "SAME", 0.1),  # what one of them rules out is not so, whatever the other says
        ((3.0, -0.1), "SAME", -0.1),
        ((-3.0, 3.5), "SAME", -3.0),
        ((-3.0, -0.6), "INCONCLUSIVE", -0.6),
        ((3.0, 0.6), "INCONCLUSIVE", 0.6),
    ],
)
def test_a_change_seen_in_several_ways_is_what_all_of_them_say(percents, kind, estimate):
    change = seen(*percents)

    assert (change.kind, change.percent.estimate) == (kind, pytest.approx(estimate))
    assert change.p_worse == max(seen(percent).p_worse for percent in percents)
    assert may_be_worse(change) is all(percent < -BAND + 0.2 for percent in percents)


def test_discoveries_are_benjamini_and_hochbergs():
    probabilities = np.random.default_rng(3).uniform(0, 0.5, 40) ** 2
    expected = textbook.false_discovery_control(probabilities) <= 0.01

    assert 0 < expected.sum() < 40
    assert discoveries(probabilities.tolist()) == expected.tolist()
    assert discoveries([]) == []
    assert discoveries([0.004]) == [True]
    assert discoveries([0.004] + [0.9] * 99) == [False] * 100
