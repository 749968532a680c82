"""A check leaves out the costly tests that read nothing that changed since a commit that passed, and no others; without one all run."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.support.commands import ROOT, ROOT_FIRST
from tests.support.trees import write
from tools.checks import changed

FILES = (
    "ch09/optimized_a.cu", "ch10/optimized_a.cu", "common/cuda/launch.cuh", "common/python/gate/statistics.py", "pyproject.toml",
    "README.md", "tests/ch09/test_a.py", "tests/ch10/test_a.py", "tests/ch12/test_a.py", "tests/common/test_a.py",
    "tests/emulation/emulate.py", "tests/emulation/test_a.py", "tests/ch14/test_quick.py",
)  # fmt: skip
FOLDERS = ("tests/ch09", "tests/ch10", "tests/ch12", "tests/emulation")


def git(root, *command):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
    return subprocess.run(["git", "-C", root, *identity, *command], capture_output=True, text=True, check=True).stdout


def commit(root, message="a"):
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", f"--message={message}")


@pytest.fixture
def root(tmp_path):
    """A repository whose one commit has a tag."""
    write(tmp_path, FILES)
    for file in tmp_path.glob("tests/*/test_a.py"):
        file.write_text("pytestmark = pytest.mark.slow")
    (tmp_path / "tests/ch12/test_a.py").write_text("from common.python.gate import statistics\n\npytestmark = pytest.mark.slow")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    git(tmp_path, "tag", "v1")
    return tmp_path


def left_out(root):
    command = [sys.executable, "-m", "tools.checks.changed", root]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines(), done.stderr.splitlines()


def folders(root, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["changed.py", str(root)])
    assert changed.main() == 0
    return tuple(line.removeprefix("--without-slow=") for line in capsys.readouterr().out.splitlines() if "slow" in line)


def test_what_did_not_change_is_left_out_and_the_reason_is_told(root):
    (root / "ch12").mkdir()
    (root / "ch12/optimized_a.cu").write_text("new")
    printed, reasons = left_out(root)
    assert printed == [f"--without-slow=tests/{name}" for name in ("ch09", "ch10", "emulation")]
    assert reasons[1].startswith("left out: slow tests of tests/ch10; none of ch10/, tests/ch10/, ")
    assert reasons[1].endswith(" changed since v1")


def test_without_a_tag_in_its_history_everything_runs(root):
    git(root, "checkout", "--quiet", "--orphan", "other")
    commit(root, "another")
    assert left_out(root) == ([], ["all tests run: found no tag to compare with, and in .ci/passed no commit of this history"])


def test_outside_a_repository_everything_runs(tmp_path, monkeypatch, capsys):
    write(tmp_path, FILES)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert folders(tmp_path, monkeypatch, capsys) == ()


@pytest.mark.parametrize(
    ("path", "runs"),
    [
        ("README.md", ()),
        ("ch09/expectations_h100.json", ()),
        ("common/docs/ci.svg", ()),
        ("tests/common/test_a.py", ()),
        ("ch09/optimized_a.cu", ("tests/ch09", "tests/ch10")),
        ("ch10/optimized_a.cu", ("tests/ch10",)),
        ("tests/ch10/test_a.py", ("tests/ch09", "tests/ch10")),
        ("tests/ch12/test_a.py", ("tests/ch12",)),
        ("tests/emulation/emulate.py", FOLDERS),
        ("common/cuda/launch.cuh", FOLDERS),
        ("common/python/child/worker.py", ("tests/ch09", "tests/ch12", "tests/emulation")),
        ("common/python/gate/statistics.py", ("tests/ch12",)),  # which it imports
        ("pyproject.toml", FOLDERS),
        ("setup.sh", FOLDERS),
        ("unheard_of/file.txt", FOLDERS),
    ],
)
def test_a_change_runs_the_tests_that_read_it(root, path, runs, monkeypatch, capsys):
    write(root, [path])
    (root / path).write_text(f"{(root / path).read_text()}\nchanged = 1")
    assert folders(root, monkeypatch, capsys) == tuple(folder for folder in FOLDERS if folder not in runs)


CHEATS = tuple(f"sum_{letter}" for letter in "abcdefghijklmnop")
JUDGES = "tests/ch20/test_adversaries_as_candidates.py"


@pytest.fixture
def with_cheats(root):
    """A repository with cheats, the test that offers them as candidates, and one of the files that are costly as a whole."""
    write(root, [*(f"tests/adversaries/cheats/optimized_{name}.py" for name in CHEATS), JUDGES, "tests/tools/checks/test_front_page.py"])
    (root / JUDGES).write_text("pytestmark = pytest.mark.slow")
    commit(root)
    git(root, "tag", "--force", "v1")
    return root


def candidates(root):
    """The cheats that are offered as candidates."""
    out, _ = left_out(root)
    return {name for name in CHEATS if f"--deselect={JUDGES}::test_an_adversary_as_a_candidate[{name}]" not in out}


def test_every_cheat_has_its_turn_as_a_candidate(with_cheats):
    seen = []
    for landing in range(changed.TURNS):
        (with_cheats / "common/python/child").mkdir(exist_ok=True)
        (with_cheats / "common/python/child/worker.py").write_text(f"changed = {landing}")
        seen += sorted(candidates(with_cheats))
        commit(with_cheats)
        git(with_cheats, "tag", f"v1.{landing}")
    assert sorted(seen) == sorted(CHEATS)
    assert len(seen) == len(CHEATS)


@pytest.mark.parametrize("path", ["tests/adversaries/cheats/baseline_sum.py", "ch20/generator.py", "common/python/processes/sandbox.py"])
def test_what_decides_of_candidates_runs_them_all(with_cheats, path):
    write(with_cheats, [path])
    (with_cheats / path).write_text("changed = 1")
    assert candidates(with_cheats) == set(CHEATS)


def test_candidates_are_left_out_with_their_folder(with_cheats):
    (with_cheats / "README.md").write_text("changed")
    out, _ = left_out(with_cheats)
    assert "--without-slow=tests/ch20" in out
    assert not [line for line in out if JUDGES in line]


@pytest.mark.parametrize(
    ("path", "runs"), [("README.md", True), ("common/python/api.py", True), ("ch09/optimized_a.cu", False), ("ch09/README.md", False)]
)
def test_a_test_that_reads_a_page_runs_where_the_page_changed(with_cheats, path, runs):
    write(with_cheats, [path])
    (with_cheats / path).write_text("changed = 1")
    out, _ = left_out(with_cheats)
    assert ("--deselect=tests/tools/checks/test_front_page.py::test_the_front_pages_python_runs" not in out) is runs


@pytest.mark.parametrize("test", changed.COSTLY)
def test_the_costly_tests_are_in_this_tree(test):
    file, _, name = test.partition("::")
    assert f"def {name or 'test_'}" in (ROOT / file).read_text()


@pytest.mark.parametrize("kind", ["committed", "staged", "new", "deleted", "moved away"])
def test_every_kind_of_change_counts(root, kind, monkeypatch, capsys):
    path = root / "ch10/optimized_a.cu"
    if kind == "new":
        path.with_name("optimized ä.cu").write_text("new")
    elif kind == "deleted":
        path.unlink()
    elif kind == "moved away":
        (root / "labs").mkdir()
        path.rename(root / "labs/optimized_a.cu")
        commit(root)
    else:
        path.write_text("changed")
        git(root, "add", "--all")
    if kind == "committed":
        commit(root)
    assert "tests/ch10" not in folders(root, monkeypatch, capsys)


def test_the_option_leaves_out_the_slow_tests_of_a_folder_alone(tmp_path):
    """In pytest itself, on made-up tests with this project's own conftest.py."""
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    gpu\n    unused_gpu\n    alone\n")
    for folder in ("ch09", "ch10"):
        write(tmp_path, [f"{folder}/test_{folder}.py"])
        text = "import pytest\n\n\n@pytest.mark.slow\ndef test_slow(): ...\n\n\ndef test_quick(): ...\n"
        (tmp_path / folder / f"test_{folder}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "-rA", "-n0", "-m", "slow or not slow", "--without-slow=ch10", "."]
    environment = {**os.environ, "PYTHONPATH": ROOT_FIRST}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    passed = [line.removeprefix("PASSED ") for line in done.stdout.splitlines() if line.startswith("PASSED ")]
    assert sorted(passed) == ["ch09/test_ch09.py::test_quick", "ch09/test_ch09.py::test_slow", "ch10/test_ch10.py::test_quick"]
    assert "3 passed, 1 deselected" in done.stdout
