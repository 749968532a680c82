"""The tests of a file run in one process, by this project's own options; on a machine with a GPU all tests do."""

import subprocess
import sys
import tomllib

import pytest

from tests.conftest import gpus
from tests.support import commands
from tests.support.commands import ROOT
from tests.support.fake_nvml import FakeGpu, FakeNvml

FILES, TESTS = 4, 6
SOURCE = f'''"""Tests that leave their process's number in a file beside this one."""

import os
import pathlib

import pytest


@pytest.mark.parametrize("number", range({TESTS}))
def test_process(number):
    with pathlib.Path(__file__).with_suffix(".pids").open("a") as file:
        print(os.getpid(), file=file)
'''


def test_the_tests_of_a_file_run_in_one_process(tmp_path):
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")  # which the options name
    files = [tmp_path / f"test_{number}.py" for number in range(FILES)]
    for file in files:
        file.write_text(SOURCE)
    command = [sys.executable, "-m", "pytest", "-c", tmp_path / "pytest.ini", *options, "--numprocesses=2", *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert f"{FILES * TESTS} passed" in done.stdout, done.stdout + done.stderr
    found = [file.with_suffix(".pids").read_text().split() for file in files]
    assert [(len(pids), len(set(pids))) for pids in found] == [(TESTS, 1)] * FILES
    assert len(set().union(*found)) == 2  # in which a file could have been torn apart


def test_gpus_are_counted_without_torch():
    assert gpus(FakeNvml()) == 0
    assert gpus(nvml := FakeNvml(FakeGpu(), FakeGpu())) == 2
    assert nvml.sessions == 0


def test_a_command_that_runs_on_is_ended_and_fails_its_own_test_alone(tmp_path, monkeypatch):
    started = commands.start("list-targets", scratch=tmp_path)
    monkeypatch.setattr(commands, "LIMIT_S", 0.01)
    with pytest.raises(pytest.fail.Exception, match=r"still running after 0\.01 s"):
        commands.finished(started)
    assert started.returncode
    assert started.stdout.closed
    assert started.stderr.closed


def test_a_command_that_ends_is_told_apart(tmp_path):
    assert commands.benchmark("list-targets", "--chapter", "ch01", scratch=tmp_path).code == 0
