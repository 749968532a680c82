"""Figures of served requests, from stamps whose answers are known by hand."""

import pytest

from common.python.measure.goal_figures import gains_from
from common.python.measure.serving import better_at
from common.python.measure.serving_figures import figure_named, figures_of_traces, interval_over, mean_depth, percentile, queue_depth
from common.python.results import ServedRequest

FIRST = ServedRequest(due_us=0, prompt_tokens=3, tokens_us=(2_000, 3_000, 6_000))
SECOND = ServedRequest(due_us=1_000, prompt_tokens=5, tokens_us=(5_000,))
TRACE = (FIRST, SECOND)


def test_latencies_are_from_when_a_request_was_due():
    figures = figures_of_traces([TRACE], slo_ttft_ms=3.0, slo_tpot_ms=2.0)
    assert figures["ttft_ms.p50"] == 3.0  # between 2 and 4
    assert figures["e2e_ms.p50"] == 5.0  # between 6 and 4
    assert figures["itl_ms.p50"] == 2.0  # between 1 and 3
    assert figures["tpot_ms.p50"] == 2.0  # 4 ms for two tokens after the first, and none of a request with one
    assert figures["output_tokens_per_s"] == pytest.approx(4 / 6e-3)
    assert figures["requests_per_s"] == pytest.approx(2 / 6e-3)
    assert figures["goodput"] == 0.5  # the second waits 4 ms for its first token


@pytest.mark.parametrize(("ttft", "tpot", "share"), [(10.0, 2.0, 1.0), (10.0, 1.9, 0.5), (1.0, 9.0, 0.0)])
def test_goodput_needs_both_bounds(ttft, tpot, share):
    assert figures_of_traces([TRACE], ttft, tpot)["goodput"] == share


def test_the_queue_holds_what_is_due_and_has_no_token():
    assert queue_depth(TRACE) == [(0, 1), (1_000, 2), (2_000, 1), (5_000, 0)]
    assert mean_depth(TRACE) == pytest.approx((1 + 2 + 3) / 6)


@pytest.mark.parametrize(("count", "has_tail"), [(999, False), (1000, True)])
def test_a_tail_needs_ten_requests_beyond_it(count, has_tail):
    assert ("ttft_ms.p99" in figures_of_traces([(FIRST,) * count], 1.0, 1.0)) is has_tail


def test_percentiles_are_between_the_nearest():
    assert percentile([4.0, 1.0, 2.0, 3.0], 0.5) == 2.5
    assert percentile([7.0], 0.95) == 7.0


def test_a_latencys_own_name_is_its_median():
    assert figure_named({"tpot_ms.p50": 2.0}, "tpot_ms") == 2.0
    assert figure_named({"tpot_ms.p50": 2.0}, "tpot_ms.p99") is None


def test_an_interval_of_shares_may_hold_zero():
    assert interval_over([0.0, 0.5, 0.5]).estimate == pytest.approx(1 / 3)
    assert interval_over([16.0, 16.0]).low == 16.0
    assert interval_over([1.0, 4.0]).estimate == pytest.approx(2.0)


@pytest.mark.parametrize(("goal", "gain"), [("tpot_ms", 2.0), ("output_tokens_per_s", 0.5), ("memory", 2.0)])
def test_a_gain_is_less_of_a_latency_and_more_of_a_rate(goal, gain):
    assert gains_from({"baseline": 8.0, "optimized": 4.0}, better_at(goal)) == {"optimized": gain}
