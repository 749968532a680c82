"""A notebook and a pytest file of ten lines, beside a package of somebody's outside the tree: as a user has them, and really run."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.support.commands import ROOT_FIRST

TESTS = """
import mine.sums as sums


def test_fast_is_faster(compare):
    result = compare(sums.slow, sums.fast, inputs=sums.draw, rtol=1e-4, atol=1e-4, device="cpu")
    assert result.how == "fresh processes"
    assert result.faster_than(1.05), result


def test_wrong_is_found(compare):
    compare(sums.slow, sums.wrong, inputs=sums.draw, rtol=1e-4, atol=1e-4, device="cpu")
"""
CELLS = """
import mine.sums as sums
from common import compare, measure
---
result = compare(sums.slow, sums.fast, inputs=sums.draw, rtol=1e-4, atol=1e-4, device="cpu")
result
---
print(result.how, result.verdict, result.speedup.low > 1)
print(measure(sums.fast, inputs=sums.draw, shape={"rows": 48}, rtol=1e-4, atol=1e-4, device="cpu"))
---
compare("mine:top_k", root="kernels", device="cpu")
"""
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": "."}}).execute()
nbformat.write(notebook, sys.argv[1])
"""


@pytest.fixture
def project(tmp_path):
    """A folder with a package, and with a root of pairs."""
    package, kernels = tmp_path / "mine", tmp_path / "kernels/mine"
    package.mkdir()
    kernels.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "sums.py").write_text(Path(__file__).with_name("sums.py").read_text())
    for file in (Path(__file__).parents[3] / "outside").glob("*_top_k.py"):
        (kernels / file.name).write_text(file.read_text())
    return tmp_path


def python_in(project, *arguments):
    scratch = project / "scratch"  # with a machine's lock that no other test's run finds taken
    scratch.mkdir()
    environment = os.environ | {"PYTHONPATH": ROOT_FIRST, "PYTEST_ADDOPTS": "", "IPYTHONDIR": str(project / "ipython")}
    environment["TMPDIR"] = str(scratch)
    return subprocess.run([sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=280)


def test_a_pytest_file_asks_the_installed_fixture(project):
    (project / "test_mine.py").write_text(TESTS)
    done = python_in(project, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "test_mine.py")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "NotMeasured: WRONG_RESULT: function wrong" in done.stdout
    assert "elements are outside rtol=0.0001" in done.stdout
    assert "common/python" not in done.stdout, "the harness's own lines say nothing of a wrong function"


def test_a_notebook_shows_functions_of_a_package_and_a_target(project):
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in CELLS.split("---")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), project / "mine.ipynb")
    done = python_in(project, "-c", EXECUTE, "mine.ipynb")
    assert done.returncode == 0, done.stderr
    _, compared, printed, target = nbformat.read(project / "mine.ipynb", 4).cells
    assert "fast is " in compared.outputs[0]["data"]["text/html"]
    assert compared.outputs[0]["data"]["text/html"].count("<circle") >= 4
    assert "".join(output["text"] for output in printed.outputs).startswith("fresh processes faster True\nfast ")
    assert "optimized is " in target.outputs[0]["data"]["text/html"]
    assert not (project / "kernels/artifacts").exists()
