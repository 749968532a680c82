"""The gate in pytest: what it lets pass, and each way in which a comparison could escape it. `compare` answers what a file says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PLUGIN = ["-p", "no:performance_pairs", "-p", "common.python.api.pytest_plugin", "-p", "no:cacheprovider", "-q"]
ANSWER = {"low": 1.9, "high": 2.1, "inputs": {"x": "float32 [32, 64]"}, "names": ["slow", "fast"], "machine": "CPU of tests"}
CONFTEST = """
import json
import sys
from pathlib import Path
from types import SimpleNamespace

from common.python.api.result import Result, Speedup
from common.python.results import Interval


def compare(**changes):
    told = json.loads(Path(__file__).with_name("answer.json").read_text()) | changes
    middle = (told["low"] * told["high"]) ** 0.5
    speedup = Speedup.of(Interval(estimate=middle, low=told["low"], high=told["high"]), 0.5)
    times = {name: Interval(estimate=1e3, low=1e3, high=1e3) for name in told["names"]}
    names, inputs, machine = tuple(told["names"]), told["inputs"], told["machine"]
    return Result(names, times, speedup, "fresh processes", "cpu", (), caveats=("a caveat",), inputs=inputs, machine=machine)


sys.modules["common.python.api.compare"] = SimpleNamespace(compare=compare)
"""
TESTS = """
def test_rms(compare):
    assert compare().faster_than(0.1)
"""


class Folder:
    """Tests of somebody's, and what a comparison finds there."""

    def __init__(self, path):
        self.path = path
        self.stored = path / "exp.json"
        (path / "conftest.py").write_text(CONFTEST)
        self.tests(TESTS)
        self.answers()

    def tests(self, text, name="test_mine.py"):
        (self.path / name).write_text(text)

    def answers(self, **changes):
        (self.path / "answer.json").write_text(json.dumps(ANSWER | changes))

    def pytest(self, *arguments, file="exp.json", plugins=("-p", "no:xdist")):
        words = [sys.executable, "-m", "pytest", *PLUGIN, *plugins, "--rootdir", self.path, *(("--gpu-expectations", file) if file else ())]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
        return subprocess.run([*words, *arguments], cwd=self.path, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture
def filled(folder):
    """A folder whose one comparison is expected."""
    assert folder.pytest().returncode == 0
    return folder


REQUIRED = "--require-gpu-expectations"


def test_what_is_new_is_stored_and_held_to_from_then_on(folder):
    first = folder.pytest()
    assert first.returncode == 0, first.stdout + first.stderr
    assert "expectations of exp.json: 0 compared, 1 stored\n" in first.stdout
    assert "  stored: test_mine.py::test_rms 1 on CPU of tests; a speedup that falls by less than 10 % will pass" in first.stdout
    (entry,) = json.loads(folder.stored.read_text())["comparisons"]["test_mine.py::test_rms 1"].values()
    assert (entry["inputs"], entry["names"]) == ({"x": "float32 [32, 64]"}, ["slow", "fast"])
    text = folder.stored.read_text()
    folder.answers(low=1.85, high=2.0)
    again = folder.pytest(REQUIRED)
    assert again.returncode == 0, again.stdout
    assert "expectations of exp.json: 1 compared, 0 stored\n" in again.stdout
    folder.answers(low=1.7, high=1.8)
    slower = folder.pytest()
    assert slower.returncode == 1
    assert "REGRESSED: fast is 1.75x" in slower.stdout
    assert "expected 1.89x or more, as exp.json has it of test_mine.py::test_rms 1 on CPU of tests" in slower.stdout
    assert "  note: a caveat" in slower.stdout
    assert "expectations of exp.json: 1 compared, 0 stored, 1 regressed\n" in slower.stdout
    assert folder.stored.read_text() == text


def test_a_renamed_test_is_told_and_fails_where_expectations_are_required(filled):
    text = filled.stored.read_text()
    filled.tests(TESTS.replace("test_rms", "test_renamed"))
    required = filled.pytest(REQUIRED)
    assert required.returncode == 1
    assert "found nothing of test_mine.py::test_renamed 1 on CPU of tests in exp.json; expected it there" in required.stdout
    assert "expectations of exp.json: 0 compared, 0 stored, 1 missing\n" in required.stdout
    assert filled.stored.read_text() == text
    loose = filled.pytest()
    assert loose.returncode == 0
    assert "expectations of exp.json: 0 compared, 1 stored\n" in loose.stdout
    assert "  1 of the 1 comparisons in exp.json were not made in this run" in loose.stdout


@pytest.mark.parametrize(
    ("arguments", "file", "sentence"),
    [
        ((), "no/such/exp.json", r"no/such/exp\.json: found no folder .*no/such; expected the folder of exp\.json to be there"),
        ((REQUIRED,), "other.json", r"other\.json is missing; expected the speedups that comparisons are required to have there"),
        ((REQUIRED,), "", r"--require-gpu-expectations: found no --gpu-expectations; expected --gpu-expectations FILE beside it"),
    ],
)
def test_a_mistyped_path_ends_the_session_before_it_starts(filled, arguments, file, sentence):
    done = filled.pytest(*arguments, file=file)
    assert done.returncode == 4
    assert re.fullmatch(rf"ERROR: .*{sentence}\n*", done.stderr), done.stderr
    assert not (filled.path / "no").exists()
    assert not (filled.path / "other.json").exists()


def test_a_run_that_had_to_compare_something_and_did_not_is_no_success(filled):
    filled.tests("def test_rms():\n    pass\n")
    assert filled.pytest().returncode == 0
    required = filled.pytest(REQUIRED)
    assert required.returncode == 5
    assert "found no comparison; expected one at least, as --require-gpu-expectations asks" in required.stdout


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"inputs": {"x": "float32 [64, 64]"}}, "the inputs changed: found x float32 [64, 64], expected x float32 [32, 64]"),
        ({"inputs": {"x": "bfloat16 [32, 64]"}}, "the inputs changed: found x bfloat16 [32, 64], expected x float32 [32, 64]"),
        ({"names": ["slow", "faster"]}, "the names changed: found slow, faster, expected slow, fast"),
    ],
)
def test_another_question_is_not_held_to_the_old_answer(filled, change, sentence):
    filled.answers(**change)
    done = filled.pytest()
    assert done.returncode == 1
    assert f"{sentence}, as exp.json has it of test_mine.py::test_rms 1 on CPU of tests" in done.stdout, done.stdout
    assert "expectations of exp.json: 0 compared, 0 stored, 1 changed\n" in done.stdout


def test_another_machine_has_an_entry_of_its_own(filled):
    filled.answers(machine="Another", low=0.9, high=1.0)
    assert filled.pytest(REQUIRED).returncode == 1
    assert "0 compared, 1 stored\n" in filled.pytest().stdout
    assert [*json.loads(filled.stored.read_text())["comparisons"]["test_mine.py::test_rms 1"]] == ["CPU of tests", "Another"]
    assert filled.pytest(REQUIRED).returncode == 0


def entry(**changes):
    held = {
        "speedup": {"estimate": 2, "low": 1.9, "high": 2.1} | changes,
        "names": ["a", "b"],
        "inputs": {},
        "clock": "host",
        "cache": "cold",
    }
    return json.dumps({"schema_version": 1, "comparisons": {"t": {"m": held}}})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema_version": 1, ', r"line 1, column \d+: .*; expected a whole JSON document"),
        ("[1,2]", "no schema_version; expected a document of schema version 1 to 1"),
        (entry(low="x"), r"comparisons\.t\.m\.speedup\.low: Input should be a valid number.*; expected schema version 1 .*"),
        (entry(low=-5), r"comparisons\.t\.m: speedup\.low -5; a ratio of two times is above 0; expected schema version 1 .*"),
        ('{"t 1 on the CPU": {"estimate": 2, "low": 1, "high": 3}}', "found speedups without the inputs they are of, as an earlier .*"),
    ],
)
def test_a_file_that_is_no_such_document_is_one_sentence_before_any_test(folder, text, sentence):
    folder.stored.write_text(text)
    done = folder.pytest()
    assert (done.returncode, done.stdout) == (4, "")
    assert re.fullmatch(rf"ERROR: \S*exp\.json: {sentence}\n*", done.stderr), done.stderr
    assert folder.stored.read_text() == text


def test_a_noisy_result_is_refused_and_a_wide_one_is_told_each_time(folder):
    folder.answers(low=1.5, high=2.5)
    refused = folder.pytest()
    assert refused.returncode == 1
    assert "is too noisy to be stored: found a half-width of 26 %, expected at most 15.5 %" in refused.stdout
    assert "0 compared, 0 stored, 1 not stored\n" in refused.stdout
    assert not folder.stored.exists()
    folder.answers(low=0.870, high=1.049)
    assert "a speedup that falls by less than 17 % will pass" in folder.pytest().stdout
    assert (
        "1 held to wide intervals: of test_mine.py::test_rms 1 on CPU of tests a speedup that falls by less than 17 %"
        in folder.pytest().stdout
    )


def test_a_test_that_fails_stores_nothing(folder):
    folder.tests(TESTS.replace("0.1", "3"))
    done = folder.pytest()
    assert done.returncode == 1
    assert "0 compared, 0 stored, 1 not stored\n" in done.stdout
    assert "  not stored: test_mine.py::test_rms 1 on CPU of tests; its test failed" in done.stdout
    assert not folder.stored.exists()


def test_workers_of_xdist_hold_and_store_as_one_process_does(folder):
    for name in ("test_a.py", "test_b.py", "test_c.py"):
        folder.tests(TESTS, name)
    two = ("-p", "xdist", "-n", "2")
    first = folder.pytest(plugins=two)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "expectations of exp.json: 0 compared, 4 stored\n" in first.stdout
    assert len(json.loads(folder.stored.read_text())["comparisons"]) == 4
    again = folder.pytest(REQUIRED, plugins=two)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "expectations of exp.json: 4 compared, 0 stored\n" in again.stdout


def test_without_the_option_nothing_is_held(folder):
    done = folder.pytest(file="")
    assert done.returncode == 0
    assert "expectations of" not in done.stdout
