"""The costly checks of a pair are left out where nothing that they read changed, and never where something did."""

import sys

import pytest

from tests.support.trees import pair_files, write
from tests.tools.checks.test_changed import ROOT, commit, git
from tools.checks import changed
from tools.checks.changed import CHECKS, PASSED, TURNS, Selection
from tools.checks.reads import Reads

PYTHON_SIDE, CUDA_SIDE, ARCHITECTURES, CLAIMS, TEETH, _ = (check.test for check in CHECKS)
TARGETS = ("ch01:sum", "ch02:copy", "ch02:kernel", "labs/lab:model")
TEXTS = {
    "ch01/optimized_sum.py": "from shared_sums import twice\n",
    "ch01/shared_sums.py": "import torch\n",
    "ch02/optimized_kernel.cu": '#include "common/cuda/launch.cuh"\n#include "ch01/shared_tile.cuh"\n',
    "ch01/shared_tile.cuh": '#include "shared_gone.cuh"\n',
    "common/cuda/launch.cuh": "",
    "labs/lab/workload_model.py": "from common.models.decoder import decode\n",
    "common/__init__.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from common.python.api import compare\n",
    "common/models/__init__.py": "",
    "common/models/decoder.py": "",
    "common/models/assets/weights.bin": "",
    "common/python/api/__init__.py": "",
    "common/python/child/worker.py": "",
    "common/python/report/html.py": "",
    "tests/pairs/test_right_on_cpu.py": "from tests.pairs import harness\n",
    "tests/pairs/harness.py": "",
    "pyproject.toml": "[project]\nname = 'a'\n",
}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository with four pairs, whose .ci/passed names its first commit; it is nobody's turn."""
    in_cuda = ("ch02/baseline_kernel.py", "ch02/optimized_kernel.py")
    write(tmp_path, [file.replace(".py", ".cu") if file in in_cuda else file for file in pair_files(*TARGETS)])
    write(tmp_path, TEXTS)
    for path, text in TEXTS.items():
        (tmp_path / path).write_text(text)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    passed(tmp_path, head(tmp_path))
    monkeypatch.setattr(changed, "_is_turn", lambda name, turn: False)
    return tmp_path


def head(root):
    return git(root, "rev-parse", "HEAD").strip()


def passed(root, name):
    write(root, [PASSED])
    (root / PASSED).write_text(f"{name}  # it passed whole\n")
    commit(root, "passed")


def change(root, path):
    write(root, [path])
    (root / path).write_text(f"{(root / path).read_text()}\n")


def printed(root, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["changed.py", str(root)])
    assert changed.main() == 0
    return capsys.readouterr()


def runs(root, monkeypatch, capsys, test=PYTHON_SIDE):
    """The targets for which `test` is not left out."""
    out = printed(root, monkeypatch, capsys).out.splitlines()
    return {target for target in TARGETS if f"--deselect={test.format(target)}" not in out}


@pytest.mark.parametrize(
    ("path", "test", "targets"),
    [
        ("ch01/optimized_sum.py", PYTHON_SIDE, {"ch01:sum"}),
        ("ch01/shared_sums.py", PYTHON_SIDE, {"ch01:sum"}),
        ("ch02/workload_copy.py", CLAIMS, {"ch02:copy"}),
        ("ch01/torch.py", PYTHON_SIDE, {"ch01:sum"}),  # is found before PyTorch
        ("ch02/optimized_kernel.cu", ARCHITECTURES, {"ch02:kernel"}),
        ("ch01/shared_tile.cuh", CUDA_SIDE, {"ch02:kernel"}),
        ("ch01/shared_gone.cuh", CUDA_SIDE, {"ch02:kernel"}),  # which was not there
        ("common/cuda/launch.cuh", ARCHITECTURES, {"ch02:kernel"}),
        ("common/models/decoder.py", PYTHON_SIDE, {"labs/lab:model"}),
        ("common/models/assets/weights.bin", PYTHON_SIDE, {"labs/lab:model"}),
        ("ch02/table.json", PYTHON_SIDE, {"ch02:copy", "ch02:kernel"}),  # whoever reads it, it is one of these
        ("common/python/report/html.py", PYTHON_SIDE, set()),
        ("common/python/api/__init__.py", PYTHON_SIDE, set()),  # imported for type checkers alone
        ("common/python/child/worker.py", PYTHON_SIDE, set(TARGETS)),
        ("common/python/child/worker.py", ARCHITECTURES, set()),
        ("tests/pairs/harness.py", PYTHON_SIDE, set(TARGETS)),
        ("tests/pairs/conftest.py", CLAIMS, set(TARGETS)),
        ("common/__init__.py", PYTHON_SIDE, {"labs/lab:model"}),
        ("README.md", PYTHON_SIDE, set()),
        ("ch01/expectations_h100.json", PYTHON_SIDE, set()),
        ("constraints.txt", CLAIMS, set(TARGETS)),
        ("unheard_of/file.txt", CLAIMS, set(TARGETS)),
        ("pyproject.toml", CLAIMS, set()),  # says the same
        ("ch02/workload_copy.py", TEETH, {"ch02:copy"}),
        ("common/python/child/sides/compare.py", TEETH, set(TARGETS)),
        ("common/python/child/worker.py", TEETH, set()),
    ],
)
def test_a_change_runs_the_pairs_that_it_may_affect(root, path, test, targets, monkeypatch, capsys):
    change(root, path)
    kind = {CUDA_SIDE: {"ch02:kernel"}, ARCHITECTURES: {"ch02:kernel"}, PYTHON_SIDE: set(TARGETS) - {"ch02:kernel"}}.get(test, set(TARGETS))
    assert runs(root, monkeypatch, capsys, test) & kind == targets & kind


@pytest.mark.parametrize("path", ["ch01/shared_sums.py", "common/cuda/launch.cuh"])
def test_what_is_deleted_changed_for_those_that_read_it(root, path, monkeypatch, capsys):
    (root / path).unlink()
    readers = {"ch01/shared_sums.py": "ch01:sum", "common/cuda/launch.cuh": "ch02:kernel"}
    assert readers[path] in runs(root, monkeypatch, capsys, CLAIMS)


def test_what_pyproject_says_to_linters_alone_decides_no_test(root, monkeypatch, capsys):
    (root / "pyproject.toml").write_text(f"{TEXTS['pyproject.toml']}[tool.ruff]\nline-length = 90\n")
    assert runs(root, monkeypatch, capsys, CLAIMS) == set()
    (root / "pyproject.toml").write_text(f"{TEXTS['pyproject.toml']}dependencies = ['torch']\n")
    assert runs(root, monkeypatch, capsys, CLAIMS) == set(TARGETS)


def test_how_many_are_left_out_is_told_in_a_line(root, monkeypatch, capsys):
    first = (root / PASSED).read_text()[:8]
    change(root, "ch01/optimized_sum.py")
    (told,) = [line for line in printed(root, monkeypatch, capsys).err.splitlines() if "pairs" in line]
    counts = "13 of 17 costly checks of pairs, in 3 of 4 pairs; a pair of 4 runs in turn (turn 2)"
    assert told == f"left out: {counts}; nothing that they read changed since {first}, of .ci/passed"


def test_every_pair_has_its_turn(tmp_path):
    write(tmp_path, pair_files(*TARGETS))
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    seen = []
    for _ in range(TURNS):
        passed(tmp_path, head(tmp_path))
        selection = Selection(tmp_path, ["tools/a.py"])
        seen += [pair.target for pair in selection.pairs if selection.runs(CHECKS[0], pair)]
        assert not any(Selection(tmp_path, ["README.md"]).runs(CHECKS[0], pair) for pair in selection.pairs)
    assert sorted(seen) == sorted(TARGETS)


def test_the_nearer_of_tag_and_passed_commit_counts(root, monkeypatch, capsys):
    change(root, "ch01/optimized_sum.py")
    commit(root)
    git(root, "tag", "v1")
    assert runs(root, monkeypatch, capsys) & {"ch01:sum"} == set()
    change(root, "ch02/optimized_copy.py")
    commit(root)
    passed(root, head(root))
    assert runs(root, monkeypatch, capsys, CLAIMS) == set()


def test_a_commit_of_another_history_does_not_count(root, monkeypatch, capsys):
    main = head(root)
    git(root, "checkout", "--quiet", "--orphan", "other")
    commit(root, "another")
    other = head(root)
    git(root, "checkout", "--quiet", main)
    passed(root, other)
    assert "found no tag to compare with" in printed(root, monkeypatch, capsys).err


@pytest.mark.parametrize("name", ["0" * 40, "HEAD", ""])
def test_where_no_commit_of_that_name_is_known_everything_runs(root, name, monkeypatch, capsys):
    passed(root, name)
    git(root, "tag", "v1")
    out, err = printed(root, monkeypatch, capsys)
    assert (out, err) == ("", f"all tests run: {PASSED}: found {name!r}; expected the hash of a commit, of 40 digits\n")


def test_in_a_shallow_clone_everything_runs(root, tmp_path_factory, monkeypatch, capsys):
    shallow = tmp_path_factory.mktemp("clone") / "shallow"
    git(root, "clone", "--quiet", "--depth=1", f"file://{root}", str(shallow))
    out, err = printed(shallow, monkeypatch, capsys)
    assert (out, err) == ("", "all tests run: found no whole git history; expected a clone that is not shallow\n")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.test.rpartition("::")[2])
def test_the_checks_are_tests_of_this_tree(check):
    text = (ROOT / check.file).read_text()
    assert f"def {check.test.partition('::')[2].partition('[')[0]}(" in text
    assert all((ROOT / path).exists() for path in check.shared)


def test_what_a_file_reads_is_found_wherever_it_is_imported(tmp_path):
    texts = {
        "ch01/a.py": "import b\n\n\ndef f():\n    from common.room import c\n",
        "ch01/b.py": "from . import d\n",
        "common/room/c.py": "import ch01.e.f\n",
    }
    write(tmp_path, [*texts, "ch01/d.py", "ch01/e/f.py"])
    for path, text in texts.items():
        (tmp_path / path).write_text(text)
    read = Reads(tmp_path).of("ch01/a.py")
    assert {"ch01/a.py", "ch01/b.py", "ch01/d.py", "common/room/c.py", "common/room/__init__.py", "ch01/e/f.py"} <= read
    assert "ch02/a.py" not in read
