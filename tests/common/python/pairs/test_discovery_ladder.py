"""A ladder is read as text, its steps are files beside the workload or paths, and a run times all of them against the baseline."""

import json

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.directives import ladder_expects, ladder_steps
from common.python.pairs.discovery import discover, with_rungs
from tests.support.commands import benchmark_here, write_pair

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


def test_a_step_is_no_target_and_a_variant_beside_it_is_one_without_rungs(tmp_path):
    ladder_in(tmp_path, '("once", "demo/optimized_double_by_path.py")')
    for name in ("once", "by_path", "once_more"):
        (tmp_path / f"demo/optimized_double_{name}.py").write_text(STEP.format(name))
    assert [pair.name for pair in discover(tmp_path).pairs] == ["double", "double_once_more"]
    assert list(with_rungs(pair_in(tmp_path), tmp_path).sides) == ["baseline", "once", "double_by_path", "optimized"]
    variant = pair_in(tmp_path, "double_once_more")
    assert with_rungs(variant, tmp_path) is variant
    listed = benchmark_here("list-targets", "--root", tmp_path, scratch=tmp_path).stdout.split()
    assert [word for word in listed if word.startswith("demo:")] == ["demo:double", "demo:double_once_more"]


def test_a_ladder_of_nothing_but_steps_has_no_optimized_side(tmp_path):
    ladder_in(tmp_path, '("once",)')
    (tmp_path / "demo/optimized_double.py").rename(tmp_path / "demo/optimized_double_once.py")
    assert "found no optimized side" in discover(tmp_path).problems["demo"][0]


def test_a_ladder_that_cannot_be_read_is_a_problem_of_its_folder(tmp_path):
    ladder_in(tmp_path, "tuple(steps)")
    (tmp_path / "demo/optimized_double_once.py").write_text(STEP.format("once"))
    assert "found ladder=tuple(steps)" in discover(tmp_path).problems["demo"][0]


def test_what_is_expected_of_a_step_over_the_one_before_stands_behind_it(tmp_path):
    workload = ladder_in(tmp_path, '(\n        "once",\n        "other/baseline_twice.py",  # expects: 2x, it is twice\n    )')
    assert ladder_steps(workload) == ("once", "other/baseline_twice.py")
    assert ladder_expects(workload) == {"other/baseline_twice.py": "2x, it is twice"}


def test_without_a_ladder_a_pair_is_as_it_was(tmp_path):
    write_pair(tmp_path)
    pair = pair_in(tmp_path)
    assert with_rungs(pair, tmp_path) is pair


@pytest.mark.parametrize("ladder", ['["naive"]', "tuple(steps)", '("naive", 1)', "()"])
def test_a_ladder_is_literal_names(tmp_path, ladder):
    workload = ladder_in(tmp_path, ladder)
    with pytest.raises(BenchmarkError, match=r"workload_double.py:\d+: found ladder=.*; expected"):
        ladder_steps(workload)


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
    done = benchmark_here(*arguments, scratch=tmp_path)
    (row,) = json.loads(done.stdout)["rows"]
    (timing,) = row["timings"].values()
    assert row["status"] == "PASSED"
    assert set(timing["speedups"]) == {"once", "optimized"}
    assert timing["units"][0]["order"] == ["baseline", "once", "optimized", "optimized", "once", "baseline"]
