"""Where a root of somebody's own finds the package or project that it belongs to, and where its runs go."""

import pytest

from common.python.project import PROJECT_ROOT, import_folders
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
