"""Traces: the same from the same seed, another from another, and as the traffic says."""

import itertools
import math
import statistics
from dataclasses import replace

import pytest

from common import Traffic
from common.python.errors import BenchmarkError
from common.python.pairs.traces import draw_trace

TRAFFIC = Traffic(count=400, prompt_tokens=(20, 30), output_tokens=(1, 9), shared_prefix=(3, 8), arrivals=("per_s", 50.0))


def test_a_seed_is_a_trace():
    assert draw_trace(TRAFFIC, 100, 1, 50.0) == draw_trace(TRAFFIC, 100, 1, 50.0)
    one, other = draw_trace(TRAFFIC, 100, 1, 50.0), draw_trace(TRAFFIC, 100, 2, 50.0)
    assert {planned.prompt for planned in one}.isdisjoint(planned.prompt for planned in other)
    assert {planned.prompt[:8] for planned in one}.isdisjoint(planned.prompt[:8] for planned in other)


def test_a_trace_is_what_the_traffic_says():
    trace = draw_trace(TRAFFIC, 100, 7, 50.0)
    assert len(trace) == 400
    assert {len(planned.prompt) for planned in trace} == set(range(20, 31))
    assert {planned.output_tokens for planned in trace} == set(range(1, 10))
    assert len({planned.prompt[:8] for planned in trace}) == 3
    assert len({planned.prompt[8:] for planned in trace}) == 400
    gaps = [after.due_s - before.due_s for before, after in itertools.pairwise(trace)]
    assert statistics.fmean(gaps) == pytest.approx(1 / 50, rel=0.15)
    assert statistics.stdev(gaps) == pytest.approx(1 / 50, rel=0.25)  # of an exponential: as much as its mean


def test_answers_of_mixed_lengths_are_mostly_short_and_a_few_long():
    mixed = replace(TRAFFIC, count=4000, output_tokens=(4, 128), output_mean=24.0)
    lengths = [planned.output_tokens for planned in draw_trace(mixed, 100, 7, 0.0)]
    assert (min(lengths), max(lengths)) == (4, 128)
    assert statistics.fmean(lengths) == pytest.approx(23.4, rel=0.05)  # whole tokens, and none beyond the most
    assert statistics.median(lengths) == pytest.approx(4 + 20 * math.log(2), abs=1.5)
    longest = [max(lengths[first : first + 16]) for first in range(0, 4000, 16)]
    assert statistics.fmean(longest) == pytest.approx(70, rel=0.05)


def test_without_a_rate_all_are_due_at_once():
    assert {planned.due_s for planned in draw_trace(TRAFFIC, 100, 7, 0.0)} == {0.0}


def test_prompts_may_be_text():
    text = Traffic(count=3, prompt_tokens=(4, 4), output_tokens=(1, 1), prompts=lambda rng, count: b"abcdef"[:count])
    assert {planned.prompt for planned in draw_trace(text, 256, 7, 0.0)} == {(97, 98, 99, 100)}


@pytest.mark.parametrize("prompts", [lambda rng, count: [0], lambda rng, count: [300] * count])
def test_text_that_is_none_is_refused(prompts):
    traffic = Traffic(count=3, prompt_tokens=(4, 4), output_tokens=(1, 1), prompts=prompts)
    with pytest.raises(BenchmarkError, match="traffic prompts drew"):
        draw_trace(traffic, 256, 7, 0.0)
