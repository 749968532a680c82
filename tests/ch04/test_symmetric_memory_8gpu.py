"""The script checks all three ways on a CPU with gloo, and ends with 1 where one of them gives a wrong sum."""

import os
import subprocess
import sys

import pytest

from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch04"
SPOILED = """
import runpy

import optimized_symmetric_memory

optimized_symmetric_memory.all_reduce = lambda memory, message, total: total.copy_(message)
runpy.run_path("{script}", run_name="__main__")
"""


def run(script, processes):
    """The script's end, run by torchrun without GPUs."""
    here = os.environ | {"PYTHONPATH": str(CHAPTER), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), str(script)]
    return subprocess.run(command, env=here, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("processes", [2, 4])
def test_sums_are_right(processes):
    ended = run(CHAPTER / "symmetric_memory_8gpu.py", processes)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("gloo checked, one shot checked, two shot checked") == 3


def test_a_wrong_sum_is_seen(tmp_path):
    (tmp_path / "spoiled.py").write_text(SPOILED.format(script=CHAPTER / "symmetric_memory_8gpu.py"))
    assert run(tmp_path / "spoiled.py", 2).returncode == 1
