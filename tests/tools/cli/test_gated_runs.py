"""Runs are gated by what was accepted: the verdicts, what is measured again, what is written, and the exit codes, on synthetic units."""

import json
import re
from dataclasses import replace

import pytest

from common.python.errors import ExitCode
from common.python.gate.expectations import keep_expectations, read_expectations
from common.python.results import StopReason
from common.python.run import suite
from tests.support.factories import an_expectation, recorded_units
from tests.support.profiled import put_on_path
from tests.tools.cli.recorded_bench import H200, SIDE, WORKLOAD


def slower(percent, seed=2):
    return {"units": recorded_units(2.0 * (1 - percent / 100), count=12, seed=seed)}


def test_three_percent_slower_twice_is_red_and_exits_2(bench):
    bench.expect()

    assert bench.run(measured=[slower(3), slower(3, seed=3)]) == ExitCode.REGRESSION
    assert bench.verdict() == "REGRESSED"
    assert bench.orders == [False, True]  # the second measurement turns the order round
    assert re.search(r"ch07:add: REGRESSED: speedup -2\.\d+ % .*, beyond 0.5 %; a second measurement agrees: speedup -2\.", bench.said)
    assert 'failure type="REGRESSED"' in (bench.folder / "junit.xml").read_text()
    assert json.loads((bench.folder / "ch07_add" / "second_metrics.json").read_text())["target"] == "ch07:add"


@pytest.fixture
def profilers(bench, root, tmp_path, monkeypatch):
    """Stand-ins for nsys and ncu, for rows as if they had run on the GPU; with what a step of the optimized side moved when accepted."""
    put_on_path(monkeypatch, "nsys", "ncu", folder=tmp_path / "tools")
    explained = suite._Suite._explained
    monkeypatch.setattr(suite._Suite, "_explained", lambda self, row, plan: explained(self, row, replace(plan, device="cuda")))
    expected = an_expectation(2.0, shape={"n": 1000}, clock="host")
    optimized = expected.sides["optimized"].model_copy(update={"counters": {"dram__bytes.sum": 2.0**28 / 1.03}})
    expected = expected.model_copy(update={"sides": expected.sides | {"optimized": optimized}})
    keep_expectations(root / "ch07" / "expectations_h200.json", "add", {"default": expected})


@pytest.mark.usefixtures("profilers")
def test_what_is_red_twice_is_profiled_by_itself_and_its_counters_are_ranked(bench):
    assert bench.run(measured=[slower(3), slower(3, seed=3)]) == ExitCode.REGRESSION
    row = bench.rows["ch07:add"]
    assert bench.measured == 2
    ranked = [note for note in row["notes"] if note.startswith("red, and by what ")]
    assert ranked[0].startswith("red, and by what optimized and baseline differ most: dram__bytes.sum 512 MiB → 256 MiB (0.50x), ")
    assert ranked[1:] == ["red, and by what optimized now and as it was accepted differ most: dram__bytes.sum 249 MiB → 256 MiB (1.03x)"]
    assert row["sides"]["optimized"]["profile"]["counters"]["dram__bytes.sum"] == 2.0**28
    assert "ncu_arguments.txt" in {path.name for path in (bench.folder / "ch07_add").iterdir()}
    assert ranked[0] in bench.said
    unprofiled = json.loads((bench.folder / "ch07_add" / "second_metrics.json").read_text())
    assert unprofiled["sides"]["optimized"]["profile"] is None


@pytest.mark.usefixtures("profilers")
def test_with_profile_none_not_even_what_is_red_twice_is_profiled(bench):
    assert bench.run("--profile", "none", measured=[slower(3), slower(3, seed=3)]) == ExitCode.REGRESSION
    assert not list(bench.folder.rglob("profile*"))
    assert not any(note.startswith(("red, and by what", "profile: ")) for note in bench.rows["ch07:add"]["notes"])


@pytest.mark.usefixtures("profilers")
@pytest.mark.parametrize("measured", [[slower(0)], [slower(3), slower(0)]])
def test_what_is_not_red_twice_is_not_profiled(bench, measured):
    assert bench.run(measured=measured) == ExitCode.GOOD
    assert not list(bench.folder.rglob("profile*"))


def test_red_once_only_is_inconclusive(bench):
    bench.expect()

    assert bench.run(measured=[slower(3), slower(0)]) == ExitCode.GOOD
    assert bench.verdict() == "INCONCLUSIVE"
    assert bench.run("--fail-on", "inconclusive", measured=[slower(3), slower(0)]) == ExitCode.INCONCLUSIVE


def test_what_is_accepted_is_the_same_when_it_is_measured_again_whatever_the_commit_is(bench, root):
    assert bench.run("--accept-regressions", measured=[{"units": recorded_units(2.0, count=24, seed=1)}]) == ExitCode.GOOD
    assert bench.verdict() == "NEW"
    kept = read_expectations(root / "ch07" / "expectations_h200.json").pairs["add"]["default"]
    assert len(kept.logs) == 24
    assert kept.provenance.gpu == "NVIDIA H200"
    commit = bench.machine.project.model_copy(update={"commit": "f" * 40})
    bench.machine = bench.machine.model_copy(update={"project": commit, "root": commit})

    assert bench.run("--require-expectations", measured=[slower(0)]) == ExitCode.GOOD
    assert bench.verdict() == "SAME"
    assert bench.measured == 1


def test_a_wider_gate_lets_more_pass(bench):
    bench.expect()

    assert bench.run("--gate", "5", measured=[slower(3)]) == ExitCode.GOOD
    assert bench.verdict() == "SAME"


def test_an_improvement_is_offered_and_never_written(bench, root):
    bench.expect()
    before = (root / "ch07" / "expectations_h200.json").read_text()

    assert bench.run(measured=[slower(-3)]) == ExitCode.GOOD
    assert bench.verdict() == "IMPROVED"
    assert "promote it with --accept-regressions?" in bench.said
    assert (root / "ch07" / "expectations_h200.json").read_text() == before


def test_a_regression_that_is_accepted_is_what_is_expected_from_then_on(bench):
    bench.expect()
    worse = [{"units": recorded_units(1.94, count=24, seed=5)}]

    assert bench.run("--accept-regressions", measured=worse) == ExitCode.GOOD
    assert (bench.verdict(), bench.measured) == ("REGRESSED", 1)
    assert bench.run(measured=[slower(3)]) == ExitCode.GOOD
    assert bench.verdict() == "SAME"


def test_another_model_is_new_and_not_gated(bench):
    bench.expect()
    bench.machine = bench.machine.model_copy(update={"gpus": (H200.model_copy(update={"name": "NVIDIA B200"}),)})

    assert bench.run(measured=[slower(30)]) == ExitCode.GOOD
    assert bench.verdict() == "NEW"
    assert "not gated: nothing is expected of it on B200 yet" in bench.said
    assert bench.run("--require-expectations", measured=[slower(30)]) == ExitCode.NOTHING_MEASURED


def test_a_workload_that_changed_its_shape_is_new(bench, root):
    bench.expect()
    (root / "ch07" / "workload_add.py").write_text(WORKLOAD.replace('"n": 1000', '"n": 2000'))

    assert bench.run(measured=[slower(30)]) == ExitCode.GOOD
    assert "not gated: shape n=2000 where n=1000 was accepted" in bench.said


@pytest.mark.parametrize("flag", [["--kwargs", "n=2000"], ["--iterations", "2"], ["--cold-start"], ["--sustained"], ["--sweep", "n=2000"]])
def test_what_asks_another_question_is_never_gated(bench, flag):
    bench.expect()

    assert bench.run(*flag, measured=[slower(30)]) == ExitCode.GOOD
    assert bench.rows["ch07:add"]["verdicts"] == {}


def test_a_half_is_never_gated(bench):
    bench.expect()
    half = recorded_units(2.0)
    alone = tuple(unit.model_copy(update={"order": ("optimized",), "blocks": {"optimized": unit.blocks["optimized"]}}) for unit in half)

    assert bench.run("--targets", "ch07:add_optimized", measured=[{"units": alone}]) == ExitCode.GOOD
    assert bench.rows["ch07:optimized_add"]["verdicts"] == {}


def test_a_wrong_answer_exits_4_before_it_is_timed(bench, root):
    bench.expect()
    (root / "ch07" / "optimized_add.py").write_text(SIDE.format("Optimized", 2, 2))

    assert bench.run(measured=[slower(30)]) == ExitCode.WRONG
    assert bench.measured == 0


def test_every_row_skipped_exits_5(bench, root):
    (root / "ch07" / "workload_add.py").write_text(WORKLOAD.replace("import torch\n", "import torch\n\n# needs: tcgen05\n", 1))

    assert bench.run() == ExitCode.NOTHING_MEASURED
    assert bench.rows["ch07:add"]["status"] == "SKIPPED"


def test_a_throttled_row_passes_says_nothing_and_exits_6(bench):
    bench.expect()

    assert bench.run(measured=[slower(30) | {"stop_reason": StopReason.THROTTLED}]) == ExitCode.UNFIT
    assert (bench.rows["ch07:add"]["status"], bench.verdict()) == ("PASSED", "INCONCLUSIVE")


def test_a_cpu_is_never_gated_and_never_accepted(bench, root):
    bench.machine = bench.machine.model_copy(update={"gpus": ()})

    assert bench.run("--accept-regressions", measured=[{"units": recorded_units(2.0, count=24)}]) == ExitCode.USAGE
    assert bench.complained == "error: --accept: found 0 GPUs; expected a GPU, as a CPU's time is never gated\n"
    assert (bench.measured, bench.folder.is_dir(), list(root.rglob("expectations_*.json"))) == (0, False, [])
    assert bench.run() == ExitCode.GOOD


@pytest.mark.parametrize(
    ("units", "why_not"),
    [
        (recorded_units(2.0, count=8), "found 8 units; expected at least 10"),
        (recorded_units(2.0, count=12, deviation=0.02), "%; expected at most 0.25 %, half of the band"),
    ],
)
def test_what_is_too_uncertain_is_not_accepted(bench, root, units, why_not):
    assert bench.run("--accept-regressions", measured=[{"units": units}]) == ExitCode.GOOD
    assert "@default is not accepted: found " in bench.said
    assert why_not in bench.said
    assert not list(root.rglob("expectations_*.json"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "expected a whole JSON document"),
        ('{"schema_version": 99}', "schema version 99; expected at most 1: a newer release wrote it"),
        ('{"schema_version": 1, "gpu": "b200"}', "found gpu b200; expected h200, as in its name"),
    ],
)
def test_expectations_that_cannot_be_read_end_the_run_before_it_begins(bench, root, text, complaint):
    (root / "ch07" / "expectations_h200.json").write_text(text)

    assert bench.run() == ExitCode.USAGE
    assert "expectations_h200.json" in bench.complained
    assert complaint in bench.complained
    assert not bench.folder.exists()
