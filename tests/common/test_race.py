"""common/race.py: the winner of a race, and when a candidate leaves it."""

import random

import pytest
import torch

from common import race


def noisy(means, spread, seed=1):
    """A clock for candidates, by their means, and how often each was asked for."""
    rand, asked = random.Random(seed), dict.fromkeys(means, 0)

    def time(candidate):
        asked[candidate] += 1
        return rand.gauss(means[candidate], spread)

    return time, asked


def test_the_fastest_wins_and_those_far_behind_leave_at_once():
    time, asked = noisy({"a": 10.0, "b": 30.0, "c": 50.0}, 0.5)
    assert race.fastest("abc", time) == "a"
    assert asked == {"a": 5, "b": 5, "c": 5}


def test_those_that_are_close_run_until_the_last_round():
    time, asked = noisy({"a": 10.0, "b": 10.0, "c": 50.0}, 0.5)
    assert race.fastest("abc", time, rounds=12) in "ab"
    assert asked["c"] == 5
    assert max(asked["a"], asked["b"]) > 5


def test_one_sample_far_off_decides_nothing():
    samples = {"a": iter([100.0] + [10.0] * 19), "b": iter([12.0] * 20)}
    assert race.fastest("ab", lambda each: next(samples[each]), rounds=20) in "ab"
    assert race.interval([10.0, 10.0]) == (10.0, 10.0)


@pytest.mark.parametrize("seed", range(20))
def test_one_in_twenty_races_at_most_goes_to_one_that_is_a_twentieth_slower(seed):
    time, _ = noisy({"a": 10.0, "b": 10.5}, 0.2, seed)
    assert race.fastest("ab", time) == "a"


def test_a_race_of_one_is_not_run_and_of_none_is_refused():
    assert race.fastest("a", lambda each: pytest.fail("timed")) == "a"
    with pytest.raises(ValueError, match="found no candidate"):
        race.fastest("", lambda each: 1.0)


@pytest.mark.gpu
def test_a_host_that_is_slow_between_two_kernels_is_not_timed():
    x, more = torch.zeros(1, device="cuda"), torch.zeros(1 << 22, device="cuda")
    numbers = torch.zeros(1 << 14, dtype=torch.float64)

    def slow_host():
        x.add_(1)
        numbers.sin().sum().item()  # the host is at work for longer than both kernels
        x.add_(1)

    clock = race.gpu_clock({"plain": lambda: x.add_(1).add_(1), "slow host": slow_host, "slow GPU": lambda: more.add_(1).add_(1)})
    assert clock("slow host") == pytest.approx(clock("plain"), rel=0.5)
    assert clock("slow GPU") > 1.5 * clock("plain")
