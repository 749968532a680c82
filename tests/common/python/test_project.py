"""Where a root of somebody's own finds the package or project that it belongs to, and where its runs go; which root is taken by default."""

import sys

import pytest

from common.python import project
from common.python.errors import BenchmarkError
from common.python.project import IS_CHECKOUT, PROJECT_ROOT, default_root, import_folders, program
from common.python.storage import ARTIFACTS, runs_folder


@pytest.mark.parametrize(
    ("files", "root", "found"),
    [
        ([], "kernels", []),
        (["mine/__init__.py"], "mine/kernels", ["."]),
        (["mine/__init__.py", "mine/kernels/__init__.py"], "mine/kernels", ["."]),
        (["mine/__init__.py", "mine/gpu/__init__.py"], "mine/gpu/kernels", ["."]),
        (["kernels/__init__.py"], "kernels", ["."]),
        (["pyproject.toml"], "kernels", ["."]),
        (["pyproject.toml", "src/mine/__init__.py"], "kernels", [".", "src"]),
        (["kernels/pyproject.toml"], "kernels", ["kernels"]),
        (["pyproject.toml", "src/mine/__init__.py"], "src/mine/kernels", ["src"]),
        (["work/mine/__init__.py", "work/pyproject.toml", "work/src/other.py"], "work/mine/kernels", ["work", "work/src"]),
        (["mine/ops.py"], "mine/kernels", []),
    ],
)
def test_a_root_is_part_of_the_package_or_project_around_it(tmp_path, files, root, found):
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / root).mkdir(parents=True, exist_ok=True)
    assert import_folders(tmp_path / root) == tuple((tmp_path / folder).resolve() for folder in found)


def test_a_root_in_this_project_has_nothing_of_its_own():
    assert import_folders(PROJECT_ROOT) == ()
    assert import_folders(PROJECT_ROOT / "tests/adversaries") == ()
    assert runs_folder(PROJECT_ROOT) == runs_folder(PROJECT_ROOT / "tests/adversaries") == ARTIFACTS


def test_runs_of_a_root_elsewhere_go_there(tmp_path):
    assert runs_folder(tmp_path) == tmp_path.resolve() / "artifacts"


def test_a_checkout_is_its_own_root_wherever_its_user_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (IS_CHECKOUT, default_root()) == (True, PROJECT_ROOT)


def test_the_root_of_an_installed_wheel_is_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(project, "IS_CHECKOUT", False)
    monkeypatch.chdir(tmp_path)
    assert default_root() == tmp_path
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(BenchmarkError, match="removed it; expected one, or --root"):
        default_root()


@pytest.mark.parametrize(
    ("called", "told"),
    [
        ("{}/venv/bin/benchmark_cli", "venv/bin/benchmark_cli"),
        ("/opt/venv/bin/benchmark_cli", "/opt/venv/bin/benchmark_cli"),
        ("/opt/my venv/benchmark_cli", "'/opt/my venv/benchmark_cli'"),
        ("tools/cli/benchmark_cli.py", "venv/bin/python tools/cli/benchmark_cli.py"),
        ("{}/tools/cli/benchmark_cli.py", "venv/bin/python tools/cli/benchmark_cli.py"),
        ("/usr/bin/pytest", "benchmark_cli"),
    ],
)
def test_the_program_is_named_so_that_it_can_be_pasted(tmp_path, monkeypatch, called, told):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [called.format(tmp_path)])
    monkeypatch.setattr(sys, "executable", f"{tmp_path}/venv/bin/python")
    assert program() == told


def test_from_a_folder_that_is_gone_it_is_named_by_its_whole_path(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "argv", ["/opt/venv/bin/benchmark_cli"])
    assert program() == "/opt/venv/bin/benchmark_cli"
