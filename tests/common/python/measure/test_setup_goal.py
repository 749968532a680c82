"""A goal of set-up is measured from fresh processes, gated by its own ratio, and never by how fast a step is."""

import json

import pytest

from common.python.gate.noise_floor import StepClass
from tests.support.commands import benchmark_here, write_pair
from tests.support.factories import a_recorded_timing
from tests.support.plans import a_plan, standards_for

SLOWLY = '''"""A table made entry by entry when the side is set up."""

import torch


def prepare(x):
    table = torch.tensor([sum(range(1000)) * 0 + 2.0 for _ in range(40_000)])[:1]
    return lambda: x * table
'''
AT_ONCE = '''"""The same table, made by one operator; a step is slower."""

import torch


def prepare(x):
    table = torch.full((1,), 2.0)
    return lambda: torch.stack([x * table for _ in range(50)]).amax(0)
'''


@pytest.mark.slow
def test_the_side_that_is_ready_sooner_wins_whatever_its_step_takes(tmp_path):
    root = write_pair(tmp_path / "root", baseline=SLOWLY, optimized=AT_ONCE, goal='"setup"', atol="1e-6")
    done = benchmark_here("run", "--root", root, "--artifacts-dir", tmp_path / "run", scratch=tmp_path)
    assert done.code == 0, done
    (row,) = json.loads((tmp_path / "run/metrics.json").read_text())["rows"]
    timing = row["timings"]["cpu"]
    assert (timing["goal"], timing["mode"]) == ("setup", "cold_start")
    assert timing["gains"]["optimized"]["low"] > 5
    assert len(timing["units"]) >= 4
    assert all(len(block["samples_ns"]) == 1 for unit in timing["units"] for blocks in unit["blocks"].values() for block in blocks)


def test_set_up_is_held_to_a_band_of_its_own(tmp_path):
    plan = a_plan(tmp_path, goal="setup")
    allowance = standards_for(plan).allowance(plan, a_recorded_timing().units)
    assert (allowance.step, allowance.band_percent) == (StepClass.SETUP, 10.0)
    timed = a_plan(tmp_path)
    assert standards_for(timed).allowance(timed, a_recorded_timing().units).band_percent < 1.0


@pytest.mark.parametrize(("goal", "cold"), [("setup", True), ("time", False), ("memory", False)])
def test_only_a_goal_of_set_up_asks_for_cold_processes(tmp_path, goal, cold):
    assert a_plan(tmp_path, goal=goal).is_cold is cold
