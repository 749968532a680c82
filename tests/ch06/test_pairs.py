"""Chapter 6: the demos build with the line they print and check themselves, and the sides differ in their idea alone."""

import re
import shutil
import subprocess

import pytest

from common.python.child.sides.loader import import_file
from tests.support.cuda_sides import compiled, kernels_of
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch06"
DEMOS = {  # and what each prints where there is a GPU
    "my_first_kernel": r"(block [01] of 2, thread [0-3] of 4\n){8}",
    "simple_kernel": r"1000 squares are right\n",
    "2d_kernel": r"45 x 70 entries from 6 x 3 blocks are right\n",
    "unified_memory": r"1048576 increments are right, (prefetched|page by page.*)\n",
    "occupancy_api": r"threads a block .*\n( +\d+ +\d+ +\d+\n){9}the API's choice: \d+ threads a block, .*\n",
}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("demo", DEMOS)
def test_a_demo_builds_with_its_own_line_and_checks_its_calls(demo):
    command, run = (CHAPTER / f"{demo}.cu").read_text().splitlines()[1].removeprefix("// ").rsplit(" && ", 1)
    assert run == f"build/{demo}"
    assert command.startswith("mkdir -p build && ")
    command = command.partition(" && ")[2].replace(run, "{}")
    program = compiled(command, demo, [*CHAPTER.glob("*.cu*")])
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        assert re.fullmatch(DEMOS[demo], ended.stdout)
        assert len(set(lines := ended.stdout.splitlines())) == len(lines)  # each of the eight threads greets once
    else:
        assert "CUDA driver" in ended.stderr or "no CUDA-capable device" in ended.stderr


@pytest.mark.parametrize("pair", ["add", "coalescing", "shared_memory", "warp_divergence"])
def test_sides_differ_in_their_idea_and_not_in_their_block(pair):
    blocks = [
        re.findall(r"constexpr int (?:THREADS|WIDE)[^;]*;", (CHAPTER / f"{side}_{pair}.cu").read_text())
        for side in ("baseline", "optimized")
    ]
    assert blocks[0] in ([], blocks[1])


@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_the_compiler_has_left_two_filters_and_a_branch_between_them(side):
    (kernel,) = kernels_of(CHAPTER / f"{side}_warp_divergence.cu")
    names = [text.split()[0] for text in kernel.instructions if text != "NOP"]
    workload = import_file(CHAPTER / "workload_warp_divergence.py")
    smoothing, limiting = workload.SMOOTHINGS, 7 * workload.LIMITINGS + 1
    assert (smoothing, limiting) == (128, 127)  # as the prediction counts them
    assert names.count("MUFU.RSQ") == workload.LIMITINGS
    assert sum(name.split(".")[0] in ("FFMA", "FADD", "FMUL", "FSETP", "MUFU") for name in names) == smoothing + limiting
    assert not [name for name in names if name.startswith(("SEL", "FSEL"))]
    assert names.count("BSSY") == 1
    assert len(names) - smoothing - limiting == pytest.approx({"baseline": 25, "optimized": 28}[side], abs=2)
