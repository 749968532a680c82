"""The chapter's scripts check themselves, and say what they lack."""

import re
import subprocess
import sys

import pytest

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT


def run(script, *arguments):
    command = [sys.executable, ROOT / "ch05" / script, *arguments]
    return subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=False)


def test_every_way_to_read_a_file_brings_the_same_bytes(tmp_path):
    ran = run("storage_io_optimization.py", tmp_path)
    if "needs a disk" in ran.stderr:
        pytest.skip(ran.stderr)
    assert ran.returncode == 0, ran.stderr
    # How many pages stay in the page cache is the kernel's to decide.
    assert re.search(r"small requests: 16384 requests, at most 1 in flight; pages in the page cache: \d+ before, \d+ after", ran.stdout)
    assert "threads: 16 requests, at most 4 in flight" in ran.stdout


def test_a_folder_in_memory_is_refused():
    ran = run("storage_io_optimization.py", "/dev/shm")
    assert (ran.returncode, ran.stderr) == (1, "needs a disk; /dev/shm is on tmpfs, which keeps files in memory\n")


def test_the_example_of_gpudirect_storage_names_its_mode_or_what_is_missing():
    module = import_file(ROOT / "ch05/gpudirect_storage_example.py")
    assert module.mode_of(gpu=False) == ("ON", "needs gds; no CUDA device")
    if not module.torch.cuda.is_available():
        assert run("gpudirect_storage_example.py").stdout == "SKIPPED: needs a GPU; no CUDA device\n"
