"""What an outside team copies: the workflow's steps run files that exist, end with the gate's exit code, and keep one comment."""

import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
import yaml

from common.python.report.comment import MARK
from tests.support.commands import ROOT
from tests.support.slower import RECORDED, SLOWER
from tools.cli.benchmark_cli import run_command_line

GATING = ROOT / "tools/gating"
PAGE = ROOT / "common/docs/gating-in-ci.md"


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{text}")
    path.chmod(0o755)


def bash(name, folder, *arguments, **variables):
    environment = {key: value for key, value in os.environ.items() if key not in ("GITHUB_STEP_SUMMARY", "HARNESS", "KERNELS", "OUT")}
    environment["PATH"] = f"{folder}/bin:{environment['PATH']}"
    command = [GATING / name, *arguments]
    return subprocess.run(command, cwd=folder, env=environment | variables, capture_output=True, text=True, check=False)


@pytest.fixture
def harness(tmp_path):
    """A clone of the harness whose environment is the one that runs the tests."""
    script(tmp_path / "harness/setup.sh", f'shift\nexec {sys.executable} {ROOT}/tools/cli/benchmark_cli.py "$@"\n')
    return str(tmp_path / "harness")


def test_the_workflow_runs_files_that_exist_on_a_runner_of_ones_own():
    workflow = yaml.safe_load((GATING / "gate.yml").read_text())
    (job,) = workflow["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]

    assert [command.removeprefix("$HARNESS/") for command in commands] == ["tools/gating/gate.sh", "tools/gating/comment.sh"]
    assert all(os.access(ROOT / command.removeprefix("$HARNESS/"), os.X_OK) for command in commands)
    assert job["runs-on"][0] == "self-hosted"
    assert "fork" not in workflow[True]["pull_request"]  # YAML 1.1 reads `on` as true
    assert [step["if"] for step in job["steps"][2:]] == ["always()", "always()"]
    assert set(job["env"]) == {"HARNESS", "KERNELS", "OUT"}


def test_the_gate_on_a_machine_without_accepted_rows_is_not_green(harness, tmp_path):
    (tmp_path / "kernels").mkdir()
    assert run_command_line(["new", "ch01:row_sum", "--root", str(tmp_path / "kernels")]) == 0
    finished = bash(
        "gate.sh", tmp_path, "--device", "cpu", "--iterations", "2", HARNESS=harness, GITHUB_STEP_SUMMARY=str(tmp_path / "said")
    )

    assert finished.returncode == 5, finished
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left >= {"comment.md", "junit.xml", "report.html", "report.md", "metrics.json", "run.json", "results.csv"}
    assert ET.parse(tmp_path / "out/junit.xml").find("testsuite").get("errors") == "1"
    assert (tmp_path / "said").read_text() == (tmp_path / "out/comment.md").read_text()
    assert "### Benchmarks: nothing was gated (exit code 5)" in (tmp_path / "said").read_text()
    settings = json.loads((tmp_path / "out/run.json").read_text())["settings"]
    assert (settings["require_expectations"], settings["suite_timeout"], settings["wait"]) == (True, 1200, 600)


@pytest.mark.parametrize("code", [0, 2, 6])
def test_the_gate_ends_with_the_exit_code_of_the_run(tmp_path, code):
    script(tmp_path / "harness/setup.sh", f'printf "%s " "$@" >said\nexit {code}\n')

    assert bash("gate.sh", tmp_path, "--gate", "2", HARNESS=str(tmp_path / "harness"), KERNELS="my kernels").returncode == code
    assert (tmp_path / "said").read_text().startswith("benchmark_cli run --root my kernels --require-expectations --artifacts-dir out ")
    assert (tmp_path / "said").read_text().endswith(" --gate 2 ")


def test_without_a_harness_the_gate_says_so(tmp_path):
    nowhere, missing = bash("gate.sh", tmp_path, HARNESS=str(tmp_path)), bash("gate.sh", tmp_path)

    assert (nowhere.returncode, nowhere.stderr) == (
        1,
        f"error: HARNESS={tmp_path}: found no setup.sh in it; expected a clone of the harness\n",
    )
    assert missing.returncode != 0
    assert "HARNESS: expected the folder of the harness" in missing.stderr


@pytest.mark.parametrize(
    ("before", "asked"),
    [
        ("", ["pr comment 7 --repo me/mine --body-file out/comment.md"]),
        ("11\n12", ["api --method PATCH repos/me/mine/issues/comments/12 --field body=@out/comment.md --silent"]),
    ],
)
def test_a_pull_request_has_one_comment_that_is_changed_in_place(tmp_path, before, asked):
    script(tmp_path / "bin/gh", f'echo "$*" >>{tmp_path}/asked\nif [[ $2 == --paginate ]]; then printf "{before}"; fi\n')
    (tmp_path / "out").mkdir()
    (tmp_path / "out/comment.md").write_text("text")
    finished = bash("comment.sh", tmp_path, GITHUB_REPOSITORY="me/mine", NUMBER="7")

    assert finished.returncode == 0, finished
    listed, *rest = (tmp_path / "asked").read_text().splitlines()
    assert listed.startswith("api --paginate repos/me/mine/issues/7/comments --jq ")
    assert MARK in listed
    assert rest == asked


def test_a_run_that_left_no_comment_says_nothing(tmp_path):
    finished = bash("comment.sh", tmp_path, GITHUB_REPOSITORY="me/mine", NUMBER="7")

    assert finished.returncode == 0
    assert "out/comment.md: found no such file" in finished.stderr


def test_the_page_shows_the_comment_as_it_is(tmp_path):
    assert run_command_line(["compare", str(RECORDED), str(SLOWER), "--artifacts-dir", str(tmp_path)]) == 2
    comment = (tmp_path / "comment.md").read_text()
    shown = re.search(r"<!-- comment: begin -->\n(.*?)<!-- comment: end -->", PAGE.read_text(), re.DOTALL)

    lines = [line.removeprefix(">").strip().strip("*") for line in shown[1].splitlines()]
    assert lines[0] == "Benchmarks: slower than expected (exit code 2)"
    assert all(line in comment for line in lines)
    assert sum(line.startswith("| ch") for line in lines) == comment.count("\n| ch") == 2
