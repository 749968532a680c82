"""The scripts of chapter 14 check themselves: each ends well and says what it found, and a wrong finding ends it."""

import runpy
import subprocess
import sys

import pytest

from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch14"


def said(script):
    """What a script of the chapter prints. Raises CalledProcessError if it fails."""
    return subprocess.run([sys.executable, CHAPTER / script], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_triton_kernels_are_right():
    assert said("triton_examples.py") == ["add: right", "norm: right", "product: right"]


@pytest.mark.slow
def test_the_compiler_makes_the_graphs_and_kernels_that_the_script_says():
    assert [line.rpartition(": ")[2] for line in said("torch_compiler_examples.py")] == ["2", "1", "4", "2", "1", "1"]


def test_a_finding_that_is_not_what_was_expected_ends_the_script(capsys):
    require = runpy.run_path(str(CHAPTER / "torch_compiler_examples.py"))["require"]
    require(1, 1, "graphs")
    with pytest.raises(SystemExit, match="graphs: found 2; expected 1"):
        require(2, 1, "graphs")
    assert capsys.readouterr().out == "graphs: 1\ngraphs: 2\n"
