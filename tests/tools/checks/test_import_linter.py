"""The import linter finds what is planted in a copy of this project's code, and the parent's side loads no torch when it is run."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from common.python.project import PROJECT_ROOT

LINTER = Path(sys.executable).with_name("lint-imports")
CONTRACTS = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
ROOMS = [f"common.python.{layer}" for layers in CONTRACTS[0]["layers"] for layer in layers.split(" | ")]


def modules():
    """Every module of the parent's side, by dotted name; `api` runs in its user's process, which has torch."""
    files = sorted((PROJECT_ROOT / "common" / "python").rglob("*.py"))
    paths = [path.relative_to(PROJECT_ROOT) for path in files if not {"child", "templates", "api"} & set(path.parts)]
    return [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths]


@pytest.fixture
def linted(tmp_path):
    """What the linter says of a copy of the code to whose files lines were added, and its exit code."""

    def lint(added):
        for folder in ("common", "tools"):
            shutil.copytree(PROJECT_ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.json", "cuda"))
        shutil.copy(PROJECT_ROOT / "pyproject.toml", tmp_path)
        for path, line in added.items():
            with (tmp_path / path).open("a") as file:
                file.write(f"\n{line}\n")
        done = subprocess.run([LINTER, "--no-logo", "--no-cache"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout, done.returncode

    return lint


def test_the_code_as_it_is_keeps_every_contract(linted):
    said, code = linted({})
    assert (f"Contracts: {len(CONTRACTS)} kept, 0 broken." in said, code) == (True, 0)


@pytest.mark.parametrize(
    ("path", "line", "contract"),
    [
        ("common/python/gate/statistics.py", "import common.python.run.suite", "arrows point down"),
        ("common/python/errors.py", "def late():\n    from common.python import results", "arrows point down"),
        ("common/python/surprise.py", '"""A module in no layer."""', "arrows point down"),
        ("common/python/gate/statistics.py", "import torch", "torch stays beyond the process boundary"),
        ("common/python/storage.py", "def late():\n    import triton.language", "torch stays beyond the process boundary"),
        ("tools/cli/benchmark_cli.py", "from common.python.child import worker", "torch stays beyond the process boundary"),
        ("common/python/child/worker.py", "import common.python.session.planning", "a child knows the boundary and what lies below it"),
        ("common/python/pairs/directives.py", "import rich", "listing targets loads nothing slow"),
        ("common/__init__.py", "import numpy", "listing targets loads nothing slow"),
        ("common/python/errors.py", "import tools.checks.tree", "common knows nothing of tools"),
    ],
)
def test_a_planted_import_breaks_its_contract(linted, path, line, contract):
    said, code = linted({path: line})
    assert f"{contract} BROKEN" in said
    assert code == 1


def test_an_import_for_the_type_checker_alone_is_none(linted):
    _, code = linted({"common/python/report/tables.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"})
    assert code == 0


def test_no_room_of_the_parent_side_is_left_out_of_the_contract_on_torch():
    (contract,) = (each for each in CONTRACTS if "torch" in each["name"])
    assert {*contract["source_modules"]} == {*ROOMS, "tools.cli"} - {"common.python.api"}


def test_the_parent_side_loads_no_torch():
    code = f"import sys, {', '.join(modules())}, tools.cli.benchmark_cli; print({{'torch', 'triton'}} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("set()\n", "")
