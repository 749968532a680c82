"""Chapter 12's demos build with the line they print, and check themselves where there is a GPU."""

import re
import shutil
import subprocess

import pytest

from tests.support.cuda_sides import compiled
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch12"
DEMOS = {  # and what each prints where there is a GPU
    "cuda_graphs": r"100 steps are right; 100 launches [\d.]+ ms, one graph [\d.]+ ms\n",
    "cuda_graphs_conditional": r"(components of 60000 cells are right after \d+ rounds in one launch\n){3}",
    "dynamic_parallelism": r"16384 distances are right; the farthest node is \d+ levels away\n",
    "atomic_work_queue": r"4096 tasks are right, 4096 tickets were taken\n",
}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("demo", DEMOS)
def test_a_demo_builds_with_its_own_line_and_checks_itself(demo):
    command, run = (CHAPTER / f"{demo}.cu").read_text().splitlines()[1].removeprefix("// ").rsplit(" && ", 1)
    assert run == f"build/{demo}"
    assert command.startswith("mkdir -p build && ")
    command = command.partition(" && ")[2].replace(run, "{}")
    program = compiled(command, demo, [*CHAPTER.glob("*.cu*"), ROOT / "ch06/shared_check.cuh", ROOT / "common/cuda/launch.cuh"])
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        assert re.fullmatch(DEMOS[demo], ended.stdout)
    else:
        assert "CUDA driver" in ended.stderr or "no CUDA-capable device" in ended.stderr
