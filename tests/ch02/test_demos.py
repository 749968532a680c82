"""The CUDA programs of chapter 2 build with the line they print in their heads, and check themselves."""

import re
import shutil
import subprocess

import pytest

from tests.support.cuda_sides import compiled
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch02"
SHARED = [CHAPTER / "line_cycle.cuh", ROOT / "ch06" / "shared_check.cuh", ROOT / "common" / "cuda" / "clock.cuh"]
ROW = r"(?:device|pinned|pageable) +(?:1|16|256) MiB +[\d.]+ GB/s +\d+ ns\n"
PAIR = r"GPU \d+ to GPU \d+: (?:copies [\d.]+ GB/s, both ways together [\d.]+ GB/s; atomics (?:yes|no)|SKIPPED, needs peer access.*)\n"
DEMOS = {  # and what each prints where its hardware is there
    "gb200_grace_blackwell_coherency": r"pinned: a round trip .* us\nmalloc: (?:.*\n)+",
    "nvlink_c2c_p2p_blackwell": rf"SKIPPED: needs 2 GPUs.*\n|(?:(?:GPU \d+ +256 MiB.*\n)?{PAIR})+",
    "memory_tiers": rf"memory .*\n(?:{ROW}){{6,9}}(?:pageable: SKIPPED.*\n)?",
}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("demo", DEMOS)
def test_a_demo_builds_with_its_own_line_and_checks_itself(demo):
    command, run = (CHAPTER / f"{demo}.cu").read_text().splitlines()[1].removeprefix("// ").rsplit(" && ", 1)
    assert run.startswith("build/")
    assert command.startswith("mkdir -p build && ")
    command = command.partition(" && ")[2].replace(run, "{}")
    program = compiled(command, demo, [CHAPTER / f"{demo}.cu", *SHARED])
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        assert re.fullmatch(DEMOS[demo], ended.stdout)
    else:
        assert "CUDA driver" in ended.stderr or "no CUDA-capable device" in ended.stderr
