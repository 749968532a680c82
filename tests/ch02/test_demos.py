"""The CUDA programs of chapter 2 build with the line they print in their heads, and check themselves."""

import re
import shutil
import subprocess

import pytest

from tests.support.cuda_sides import compiled
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch02"
ROW = r"(?:device|pinned|pageable) +(?:1|16|256) MiB +[\d.]+ GB/s +\d+ ns\n"
DEMOS = {  # and what each prints where its hardware is there
    "memory_tiers": rf"memory .*\n(?:{ROW}){{6,9}}(?:pageable: SKIPPED.*\n)?",
}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("demo", DEMOS)
def test_a_demo_builds_with_its_own_line_and_checks_itself(demo):
    command, run = (CHAPTER / f"{demo}.cu").read_text().splitlines()[1].removeprefix("// ").rsplit(" && ", 1)
    assert run == f"build/{demo}"
    assert command.startswith("mkdir -p build && ")
    command = command.partition(" && ")[2].replace(run, "{}")
    program = compiled(command, demo, [*CHAPTER.glob("*.cu*"), ROOT / "ch06" / "shared_check.cuh"])
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        assert re.fullmatch(DEMOS[demo], ended.stdout)
    else:
        assert "CUDA driver" in ended.stderr or "no CUDA-capable device" in ended.stderr
