"""A root outside the project: where its runs go, what its sides may import, what `new` tells, and whose `common` is whose."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from common.python.storage import ARTIFACTS
from tests.support.commands import ROOT_FIRST, benchmark, write_pair

ROOT = Path(__file__).parents[3]
OF_A_PACKAGE = '"""A side."""\n\nfrom mine.ops import twice\n\n\ndef prepare(x):\n    return lambda: twice(x)\n'
RELATIVE = OF_A_PACKAGE.replace("mine.ops", "..ops")
OF_NOBODY = OF_A_PACKAGE.replace("mine.ops", "nobodys_module")
OWN_COMMON = OF_A_PACKAGE.replace("mine.ops", "common.helpers")


@pytest.fixture
def package(tmp_path):
    """A package of somebody's, with a folder for pairs."""
    folder = tmp_path / "work/mine"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "ops.py").write_text("def twice(x):\n    return x + x\n")
    return folder


def rows_below(folder):
    (path,) = folder.glob("artifacts/*/metrics.json")
    return {row["target"]: row for row in json.loads(path.read_text())["rows"]}


def test_a_run_lies_in_the_root_and_sides_import_the_package_around_it(package, tmp_path):
    """Started where a folder `common` and a module `torch` lie, which are for nobody."""
    root = write_pair(package / "kernels", optimized=OF_A_PACKAGE)
    stray = tmp_path / "stray"
    (stray / "common").mkdir(parents=True)
    for file in ("common/__init__.py", "torch.py"):
        (stray / file).write_text("raise RuntimeError('of the working directory')\n")
    before = sorted(ARTIFACTS.glob("*")) if ARTIFACTS.is_dir() else []
    done = benchmark("verify", "--root", root, "--device", "cpu", scratch=tmp_path, under=("env", "-C", str(stray)))
    assert done.code == 0, done
    assert rows_below(root)["demo:double"]["status"] == "PASSED"
    assert done.stdout.strip().endswith(str(next((root / "artifacts").glob("2*"))))
    assert (sorted(ARTIFACTS.glob("*")) if ARTIFACTS.is_dir() else []) == before
    listed = benchmark("list-targets", "--root", root, scratch=tmp_path)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["demo:double"], "what a run leaves is no target"


def test_history_and_prune_are_of_the_root(tmp_path):
    root = write_pair(tmp_path / "root")
    quick = ("--device", "cpu", "--iterations", "2", "--warmup", "0")
    assert benchmark("run", "--root", root, *quick, scratch=tmp_path).code == 0
    told = benchmark("history", "--root", root, scratch=tmp_path)
    assert told.code == 0, told
    assert "demo:double" in told.stdout
    would = benchmark("prune", "--root", root, "--keep", "0", "--days", "0", "--dry-run", scratch=tmp_path)
    assert str(root / "artifacts") in would.stdout


@pytest.mark.parametrize(
    ("side", "hint"),
    [
        (
            OF_NOBODY,
            "raised ModuleNotFoundError: No module named 'nobodys_module'; expected a module beside the file, one that is installed,",
        ),
        (RELATIVE, "; expected an absolute import, as each file of a pair is imported by itself"),
        (OWN_COMMON, f"; expected what {ROOT / 'common'} has, which comes before any other common"),
    ],
)
def test_an_import_that_fails_says_where_a_module_may_lie(package, tmp_path, side, hint):
    root = write_pair(package / "kernels", optimized=side)
    (root / "demo/common").mkdir()
    (root / "demo/common/__init__.py").touch()
    (root / "demo/common/helpers.py").write_text("def twice(x):\n    return x + x\n")
    done = benchmark("verify", "--root", root, "--device", "cpu", scratch=tmp_path)
    row = rows_below(root)["demo:double"]
    assert (done.code, row["status"]) == (7, "CRASHED")
    assert hint in row["reason"]


def test_a_module_of_the_root_needs_a_project_and_the_error_says_so(tmp_path):
    root = write_pair(tmp_path / "root", optimized=OF_A_PACKAGE.replace("mine.ops", "ops"))
    (root / "ops.py").write_text("def twice(x):\n    return x + x\n")
    done = benchmark("verify", "--root", root, "--device", "cpu", "--artifacts-dir", root / "artifacts/1", scratch=tmp_path)
    expected = f"No module named 'ops'; expected a module of a project: ops.py lies in {root}: put a pyproject.toml beside it"
    assert (done.code, expected in rows_below(root)["demo:double"]["reason"]) == (7, True)
    (root / "pyproject.toml").touch()
    assert benchmark("verify", "--root", root, "--device", "cpu", "--artifacts-dir", tmp_path / "run", scratch=tmp_path).code == 0


@pytest.mark.parametrize("kind", [(), ("--cuda",)])
def test_a_new_pair_tells_where_its_words_are_documented(tmp_path, kind):
    root = tmp_path / "root"
    root.mkdir()
    done = benchmark("new", "mine:row_sum", *kind, "--root", root, scratch=tmp_path)
    page = Path(done.stderr.strip().rpartition(": ")[2])
    assert done.code == 0
    assert "## Fields of `Workload`" in page.read_text()
    assert [Path(line).parent for line in done.stdout.splitlines()] == [root / "mine"] * 3
    workload, *sides = (Path(line).read_text() for line in done.stdout.splitlines())
    assert f"{page.parent.name}/{page.name}" in workload
    assert all("by name" in side for side in sides)


def python(script, *flags):
    command = [sys.executable, *flags, script.name]
    return subprocess.run(
        command, cwd=script.parent, env={"PYTHONPATH": ROOT_FIRST, "PATH": ""}, capture_output=True, text=True, timeout=100
    )


def test_a_folder_common_beside_a_script_is_named_by_pythons_error_and_p_leaves_it_out(tmp_path):
    """None of this project's code runs there, so that all of the sentence is Python's; the page says what it means."""
    script = tmp_path / "script.py"
    script.write_text("from common import compare\nprint(compare.__name__)\n")
    (tmp_path / "common").mkdir()
    assert python(script).stdout == "compare\n", "a folder without __init__.py is no package before ours"
    (tmp_path / "common/__init__.py").touch()
    shadowed = python(script)
    assert f"ImportError: cannot import name 'compare' from 'common' ({tmp_path}/common/__init__.py)" in shadowed.stderr
    assert python(script, "-P").stdout == "compare\n"


def test_the_command_line_says_whose_common_is_first(tmp_path):
    (tmp_path / "common").mkdir()
    (tmp_path / "common/__init__.py").touch()
    done = benchmark("list-targets", scratch=tmp_path, under=("env", f"PYTHONPATH={tmp_path}"))
    assert done.code == 1
    assert (
        done.error
        == f"found the package `common` of {tmp_path}/common first on Python's path; expected {ROOT}: take the other out of PYTHONPATH"
    )
