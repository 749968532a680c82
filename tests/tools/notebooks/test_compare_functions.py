"""The notebook that times two functions runs on a CPU, and shows a table."""

import os
import subprocess
import sys

import nbformat

from tests.tools.notebooks.test_plot_moe_ttft import ROOT, ROOT_FIRST

NOTEBOOK = ROOT / "tools/notebooks/compare_functions.ipynb"
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.reads(sys.stdin.read(), 4)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print(*("".join(output["data"]["text/html"]) for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output))
"""


def test_it_runs_on_a_cpu_and_shows_tables(tmp_path):
    # With a machine's lock that no other test's run finds taken.
    environment = os.environ | {"PYTHONPATH": ROOT_FIRST, "IPYTHONDIR": str(tmp_path / "ipython"), "TMPDIR": str(tmp_path)}
    executed = subprocess.run(
        [sys.executable, "-c", EXECUTE], input=NOTEBOOK.read_text(), capture_output=True, text=True, timeout=240, env=environment
    )
    assert executed.returncode == 0, executed.stderr
    assert executed.stdout.count("<table>") == 2
    assert "at_once is " in executed.stdout
    assert "in one process" in executed.stdout
    assert "in fresh processes" in executed.stdout


def test_it_is_kept_without_outputs():
    notebook = nbformat.read(NOTEBOOK, 4)
    assert not any(cell.outputs or cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
