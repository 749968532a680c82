"""A ladder is read as text, its steps are files beside the workload or paths, and a run times all of them against the baseline."""

import json

import pytest

from common.python.discovery import discover
from common.python.errors import BenchmarkError
from common.python.ladder import steps_of, with_rungs
from tests.commands import benchmark, write_pair

STEP = '"""Optimized: {}."""\n\n\ndef prepare(x):\n    return lambda: x * 2\n'


def ladder_in(folder, ladder):
    """A pair `demo:double` in `folder` with the given ladder, its steps' files not among them."""
    write_pair(folder)
    workload = folder / "demo/workload_double.py"
    workload.write_text(workload.read_text().replace("WORKLOAD = Workload(", f"WORKLOAD = Workload(\n    ladder={ladder},", 1))
    return workload


def pair_in(folder, name="double"):
    return next(pair for pair in discover(folder).pairs if pair.name == name)


def test_rungs_stand_between_baseline_and_optimized(tmp_path):
    ladder_in(tmp_path, '("once", "other/baseline_twice.py", "other/optimized_twice.py")')
    (tmp_path / "demo/optimized_double_once.py").write_text(STEP.format("once"))
    (tmp_path / "other").mkdir()
    for side in ("baseline", "optimized"):
        (tmp_path / f"other/{side}_twice.py").write_text(STEP.format("twice"))
    climbed = with_rungs(pair_in(tmp_path), tmp_path)
    assert list(climbed.sides) == ["baseline", "once", "baseline_twice", "twice", "optimized"]
    assert climbed.sides["twice"] == tmp_path / "other/optimized_twice.py"
    variant = pair_in(tmp_path, "double_once")
    assert with_rungs(variant, tmp_path) is variant


def test_without_a_ladder_a_pair_is_as_it_was(tmp_path):
    write_pair(tmp_path)
    pair = pair_in(tmp_path)
    assert with_rungs(pair, tmp_path) is pair


@pytest.mark.parametrize("ladder", ['["naive"]', "tuple(steps)", '("naive", 1)', "()"])
def test_a_ladder_is_literal_names(tmp_path, ladder):
    workload = ladder_in(tmp_path, ladder)
    with pytest.raises(BenchmarkError, match=r"workload_double.py:\d+: found ladder=.*; expected"):
        steps_of(workload)


@pytest.mark.parametrize(
    ("ladder", "found"), [('("once",)', "no file of the ladder's step 'once'"), ('("demo/optimized_double.py", "double")', "step 'double'")]
)
def test_a_step_has_a_file_and_a_name_of_its_own(tmp_path, ladder, found):
    ladder_in(tmp_path, ladder)
    with pytest.raises(BenchmarkError, match=found):
        with_rungs(pair_in(tmp_path), tmp_path)


def test_a_run_times_every_rung_in_one_interleaved_measurement(tmp_path):
    ladder_in(tmp_path, '("once",)')
    (tmp_path / "demo/optimized_double_once.py").write_text(STEP.format("once"))
    arguments = ("run", "--root", tmp_path, "--targets", "demo:double", "--iterations", "2", "--artifacts-dir", tmp_path / "run", "--json")
    done = benchmark(*arguments, scratch=tmp_path)
    (row,) = json.loads(done.stdout)["rows"]
    (timing,) = row["timings"].values()
    assert row["status"] == "PASSED"
    assert set(timing["speedups"]) == {"once", "optimized"}
    assert timing["units"][0]["order"] == ["baseline", "once", "optimized", "optimized", "once", "baseline"]
