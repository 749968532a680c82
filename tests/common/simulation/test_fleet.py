"""The simulated fleet keeps time and loads as engines do: by hand for a few requests, by theory for a queue."""

import itertools
import random
import statistics
from dataclasses import replace

import pytest

from common.serving.engines import Load
from common.simulation.fleet import ServiceTimes, Simulation, Wanted

TIMES = ServiceTimes(step_s=1.0, prompt_token_s=0.01, sequence_s=0.1, message_s=0.0, source="assumed for a test")


def first(prompt_tokens, loads):
    return 0


def test_a_step_takes_new_prompts_and_a_token_of_all_that_run():
    answers = Simulation(first, 1, 2, TIMES).serve([Wanted(0.0, 100, 3), Wanted(0.5, 200, 2), Wanted(0.6, 50, 1)])
    # Steps: the first prompt (2 s); its token and the second prompt (3.1 s); both (1.2 s); the third waits until a slot is free.
    assert answers[0].tokens_s == pytest.approx([2.0, 5.1, 6.3])
    assert answers[1].tokens_s == pytest.approx([5.1, 6.3])
    # Without a delay of messages an engine begins its next step before the front's word is there: one more of both, and then the third.
    assert answers[2].tokens_s == pytest.approx([9.0])


def test_a_message_takes_its_time_both_ways():
    answers = Simulation(first, 1, 1, replace(TIMES, message_s=0.25)).serve([Wanted(0.0, 100, 2)])
    assert answers[0].tokens_s == pytest.approx([0.25 + 2.0 + 0.25, 0.25 + 2.0 + 1.1 + 0.25])


def test_the_router_sees_what_the_front_knows():
    seen = []

    def spy(prompt_tokens, loads):
        seen.append([replace(load) for load in loads])
        return 1

    times = replace(TIMES, message_s=0.25)
    Simulation(spy, 2, 1, times).serve([Wanted(0.0, 100, 2), Wanted(0.0, 30, 1), Wanted(2.4, 1, 1), Wanted(2.6, 1, 1), Wanted(30.0, 1, 1)])
    idle = Load()
    assert seen[0] == [idle, idle]
    assert seen[1] == [idle, Load(1, 100, 0)]
    assert seen[2] == [idle, Load(2, 130, 0)]  # the first token is there after 2.25 s, its message after 2.5 s
    assert seen[3] == [idle, Load(2, 31, 1)]
    assert seen[4] == [idle, idle]


def test_all_requests_get_their_tokens_and_nobody_is_left():
    rng = random.Random(3)
    wanted = [Wanted(rng.random() * 20, rng.randint(1, 50), rng.randint(1, 9)) for _ in range(200)]
    fleets = [Simulation(lambda tokens, loads: tokens % len(loads), 3, 2, replace(TIMES, message_s=0.01)) for _ in range(2)]
    answers = [fleet.serve(wanted) for fleet in fleets]
    assert answers[0] == answers[1]
    assert [len(answer.tokens_s) for answer in answers[0]] == [each.output_tokens for each in wanted]
    assert [answer.engine for answer in answers[0]] == [each.prompt_tokens % 3 for each in wanted]
    assert all(
        answer.tokens_s == sorted(answer.tokens_s) and answer.tokens_s[0] > each.due_s
        for answer, each in zip(answers[0], wanted, strict=True)
    )
    assert fleets[0].loads == [Load()] * 3


def test_the_wait_of_one_engine_is_pollaczek_and_khinchines():
    """Poisson arrivals at 0.7 of an engine with one slot, whose service is always the same: a mean wait of 0.7 / (2 * 0.3) services."""
    rng, due, wanted = random.Random(5), 0.0, []
    for _ in range(40_000):
        due += rng.expovariate(0.35)  # a request occupies two steps: its own, and the one that began before the front's word was there
        wanted.append(Wanted(due, 0, 1))
    flat = ServiceTimes(1.0, 0.0, 0.0, 0.0, "assumed for a test")
    waits = [
        answer.tokens_s[0] - each.due_s - 1.0 for answer, each in zip(Simulation(first, 1, 1, flat).serve(wanted), wanted, strict=True)
    ]
    assert statistics.fmean(waits) == pytest.approx(2.0 * 0.7 / (2 * 0.3), rel=0.05)


def test_a_fleet_without_engines_is_refused():
    with pytest.raises(ValueError, match="engines=0, slots=1; expected at least one of each"):
        Simulation(first, 0, 1, TIMES)


def test_engines_on_one_gpu_get_equal_slices_of_its_time():
    times = ServiceTimes(step_s=1.0, prompt_token_s=0.0, sequence_s=0.0, message_s=0.0, source="")
    wanted = [Wanted(0.0, 1, 1), Wanted(0.5, 1, 1)]

    def in_turn():
        turns = itertools.count()
        return lambda *_: next(turns)

    alone, shared = (Simulation(in_turn(), 2, 1, times, is_shared=is_shared).serve(wanted) for is_shared in (False, True))
    assert [answer.tokens_s for answer in alone] == [[1.0], [1.5]]
    # Together from 0.5 on; behind 1.5 the first engine takes a step more, as the front's word is not there yet.
    assert [answer.tokens_s for answer in shared] == [[1.5], [2.5]]
