"""The parent's clock tells a side that hides a call's time from one that merely leaves the caches in another state."""

import math

import pytest

from common.python.measure.hidden_work import Span, WallClock, _surely_below_median

MS = 1e-3


def clock(baseline, optimized, samples=10):
    """What was seen in units of (around, call) in ms a side."""
    seen = WallClock()
    for side, units in (("baseline", baseline), ("optimized", optimized)):
        for around, call in units:
            seen.saw(side, [Span(samples * (around + call) * MS, samples * call * MS, samples)])
    return seen


HONEST = [(2.0, 5.0), (2.1, 5.1), (1.9, 4.9), (2.0, 5.0), (2.05, 5.0), (1.95, 5.0)]


def test_a_faster_side_is_not_one_that_hides():
    assert clock(HONEST, [(around, 0.1) for around, _ in HONEST]).hidden() == ""


def test_a_side_whose_time_is_spent_around_the_calls_is_named():
    sentence = clock(HONEST, [(around + call, 0.001) for around, call in HONEST]).hidden()
    assert sentence.startswith("optimized: its process takes at least 4.")
    assert sentence.endswith("expected the same")


def test_what_is_not_sure_or_not_much_is_no_finding():
    noisy = [(2.0, 0.1), (14.0, 0.1), (1.0, 0.1), (9.0, 0.1), (2.0, 0.1), (3.0, 0.1)]
    assert clock(HONEST, noisy).hidden() == ""
    assert clock(HONEST, [(around + 0.4, 0.1) for around, _ in HONEST]).hidden() == ""
    long_around = [(40.0 + i / 10, 5.0) for i in range(6)]
    assert clock(long_around, [(around + 6, 0.1) for around, _ in long_around]).hidden() == ""


def test_a_side_some_of_whose_units_take_far_longer_still_is_named():
    two_ways = [(12.0, 0.001), (25.0, 0.001), (11.8, 0.001), (24.0, 0.001), (12.1, 0.001), (60.0, 0.001)]
    sentence = clock(HONEST, two_ways).hidden()
    assert sentence.startswith("optimized: its process takes at least 9.")
    assert clock(HONEST, [*two_ways[:5], (2.1, 0.001)]).hidden() == ""


@pytest.mark.parametrize(("count", "rank"), [(5, 0), (6, 1), (9, 2), (24, 7)])
def test_the_rank_below_the_median_is_that_of_the_sign_test(count, rank):
    assert _surely_below_median(count) == rank
    sure = 1 - sum(math.comb(count, below) for below in range(rank)) / 2**count
    assert sure >= 0.98
    assert 1 - sum(math.comb(count, below) for below in range(rank + 1)) / 2**count < 0.98


def test_queueing_on_a_held_stream_is_not_hidden_time():
    seen = WallClock()
    for around, call in HONEST:
        seen.saw("baseline", [Span(10 * (around + call) * MS, 10 * call * MS, 10, 0.0)])
        seen.saw("optimized", [Span(10 * (around + 2.4 + 0.1) * MS, 10 * 0.1 * MS, 10, 10 * 2.4 * MS)])
    assert seen.hidden() == ""


def test_what_keeping_outputs_takes_counts_only_where_no_block_went_without():
    seen = WallClock()
    seen.saw("optimized", [Span(10.0, 1.0, 3, 0.0, 2), Span(8.0, 2.0, 3, 0.0, 0)])
    seen.saw("optimized", [Span(10.0, 1.0, 3, 0.0, 1), Span(8.0, 2.0, 3, 0.0, 1)])
    seen.saw("optimized", [Span(10.0, 1.0, 3, 0.0, 2), Span(8.0, 2.0, 3, 0.0, 1)])
    assert seen.around_s["optimized"] == [2.0, 2.5, 2.0]


def test_a_half_and_a_single_unit_tell_nothing():
    alone = WallClock()
    alone.saw("optimized", [Span(9.0, 0.1, 1)])
    assert alone.hidden() == ""
    assert clock(HONEST[:1], [(50.0, 0.1)]).hidden() == ""
