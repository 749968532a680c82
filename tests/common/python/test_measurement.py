"""Real timings of small pairs: who runs when, how often, on which inputs, and that what is timed is still checked."""

import itertools
import re

import pytest

from common.python.errors import ExitCode
from common.python.results import StopReason
from common.python.stats import geometric_interval, median_ns
from tests.commands import run_here, write_pair

ITERATIONS, UNITS, REPEAT = 3, 6, 2


def timing_of(outcome):
    assert outcome.exit_code is ExitCode.GOOD, [row.reason for row in outcome.rows]
    return outcome.rows[0].timings["cpu"]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    place = tmp_path_factory.mktemp("measured")
    return run_here(write_pair(place / "root"), place / "run", iterations=ITERATIONS, warmup=0, repeat=REPEAT)


@pytest.fixture(scope="module")
def timing(outcome):
    return timing_of(outcome)


def test_sides_alternate_and_take_turns_in_going_first(timing):
    a_first, b_first = ("baseline", "optimized", "optimized", "baseline"), ("optimized", "baseline", "baseline", "optimized")
    assert [unit.order for unit in timing.units] == [a_first, b_first] * (UNITS // 2) * REPEAT


def test_each_side_is_called_exactly_as_often_as_asked_in_each_of_six_process_pairs(timing):
    counts = [{side: sum(len(block.samples_ns) for block in blocks) for side, blocks in unit.blocks.items()} for unit in timing.units]
    assert counts == [{"baseline": ITERATIONS, "optimized": ITERATIONS}] * UNITS * REPEAT
    assert timing.stop_reason is StopReason.FIXED


def test_each_repetition_has_a_speedup_of_its_own(timing):
    halves = timing.units[:UNITS], timing.units[UNITS:]
    expected = [geometric_interval([median_ns(unit, "baseline") / median_ns(unit, "optimized") for unit in units]) for units in halves]
    assert timing.repeats == {"optimized": tuple(expected)}


def test_the_figures_follow_from_the_samples(timing):
    ratios = [median_ns(unit, "baseline") / median_ns(unit, "optimized") for unit in timing.units]
    assert timing.speedups == {"optimized": geometric_interval(ratios)}
    for side in ("baseline", "optimized"):
        assert timing.time_ns[side] == geometric_interval([median_ns(unit, side) for unit in timing.units])


def test_no_two_timed_calls_are_on_the_same_inputs(timing):
    """An answer that was remembered is a wrong one."""
    spans = sorted(
        (block.seed, block.seed + len(block.samples_ns)) for unit in timing.units for blocks in unit.blocks.values() for block in blocks
    )
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_a_timed_call_of_every_process_is_checked(outcome):
    for side in outcome.rows[0].sides.values():
        timed = [check for check in side.checks if check.timed_call]
        assert len(timed) == UNITS * REPEAT
        assert all(check.shape == {"n": 512} and check.outputs["y"].mismatched == 0 for check in timed)


def test_every_shape_is_checked_on_two_seeds_before(outcome):
    for side in outcome.rows[0].sides.values():
        checked = [(check.shape["n"], check.seed) for check in side.checks if not check.timed_call]
        assert [n for n, _ in checked] == [3, 3, 512, 512]
        assert len({seed for _, seed in checked}) == 4


def test_both_sides_are_checked_on_the_same_seeds(outcome):
    seeds = [[check.seed for check in side.checks if not check.timed_call] for side in outcome.rows[0].sides.values()]
    assert seeds[0] == seeds[1]


# --- modes

SLOW_TO_START = '''"""Baseline: 30 ms of set-up, and a look at where it may keep what it compiles."""
import os, time
from pathlib import Path

def prepare(x):
    time.sleep(0.03)
    with Path(__file__).with_name("caches").open("a") as file:
        print(os.environ.get("TRITON_CACHE_DIR"), file=file)
    return lambda: x + x
'''


def test_a_cold_start_is_a_fresh_process_with_caches_of_its_own_and_set_up_in_its_time(tmp_path):
    root = write_pair(tmp_path / "root", baseline=SLOW_TO_START)
    timing = timing_of(run_here(root, tmp_path / "run", cold_start=True, iterations=1, warmup=0))
    assert timing.mode == "cold_start"
    assert [unit.order for unit in timing.units] == [("baseline", "optimized"), ("optimized", "baseline")] * 3
    assert min(sample for unit in timing.units for block in unit.blocks["baseline"] for sample in block.samples_ns) > 30e6
    caches = (root / "demo/caches").read_text().split()
    cold = [cache for cache in caches if cache != "None"]
    assert len(cold) == len(set(cold)) == UNITS


WRONG_LATER = '''"""Optimized: right for the first calls, and then it remembers."""

def prepare(x):
    answers = []

    def step():
        if len(answers) < 6:
            answers.append(x * 2)
        return answers[-1].clone()

    return step
'''


def test_a_side_that_goes_wrong_while_it_is_timed_has_no_time(tmp_path):
    root = write_pair(tmp_path / "root", optimized=WRONG_LATER)
    outcome = run_here(root, tmp_path / "run", iterations=40, warmup=6)
    (row,) = outcome.rows
    assert (outcome.exit_code, row.status) == (ExitCode.WRONG, "WRONG_RESULT")
    assert re.match(r"optimized_double\.py at n=512, seed \d+, in a timed call: output y: \d+ of 512 elements are outside", row.reason)
    assert row.timings == {}
