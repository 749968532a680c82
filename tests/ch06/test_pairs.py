"""Chapter 6: the tolerances have teeth, the demos build with the line they print, and what the comments count is so."""

import re
import shutil
import subprocess

import pytest

from common.python.build.nvcc import build
from common.python.build.sass import read_code
from common.python.child.sides.loader import import_file, load_workload
from common.python.machine.description import find_tool
from tests.cuda_sides import arguments_of
from tests.teeth import ROOT, assert_teeth

CHAPTER = ROOT / "ch06"
SIDES = sorted(path for side in ("baseline", "optimized") for path in CHAPTER.glob(f"{side}_*.cu"))
DEMOS = {  # and what each prints where there is a GPU
    "my_first_kernel": r"(block [01] of 2, thread [0-3] of 4\n){8}",
    "simple_kernel": r"1000 squares are right\n",
    "2d_kernel": r"45 x 70 entries from 6 x 3 blocks are right\n",
    "unified_memory": r"1048576 increments are right, (prefetched|page by page.*)\n",
    "occupancy_api": r"threads a block .*\n( +\d+ +\d+ +\d+\n){9}the API's choice: \d+ threads a block, .*\n",
}


@pytest.mark.parametrize(
    ("pair", "shape", "options"),
    [
        ("add", {"n": 255}, {}),
        ("coalescing", {"rows": 33, "cols": 65}, {}),
        ("block_sizing", {"rows": 37, "cols": 33}, {}),
        ("shared_memory", {"n": 10_007}, {"reduced": ("weights", 0)}),
        ("warp_divergence", {"n": 513}, {}),
    ],
)
def test_tolerances_have_teeth(pair, shape, options):
    assert_teeth(load_workload(CHAPTER / f"workload_{pair}.py"), shape, **options)


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.name)
def test_every_argument_has_something_to_bind(side):
    workload = load_workload(CHAPTER / f"workload_{side.stem.partition('_')[2]}.py")
    assert "stream" in arguments_of(workload, side)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("demo", DEMOS)
def test_a_demo_builds_in_a_fresh_checkout_with_its_own_line_and_checks_its_calls(demo, tmp_path):
    shutil.copytree(CHAPTER, tmp_path / "ch06")
    command, run = (CHAPTER / f"{demo}.cu").read_text().splitlines()[1].removeprefix("// ").rsplit(" && ", 1)
    assert run == f"build/{demo}"
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    ended = subprocess.run([tmp_path / run], capture_output=True, text=True, check=False)
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


def test_a_window_of_32_floats_lies_across_two_lines_for_31_of_32_alignments():
    lines = [len({(offset + lane) * 4 // 128 for lane in range(32)}) for offset in range(32)]
    assert sorted(lines) == [1] + [2] * 31


def test_rows_of_100_fill_100_of_128_lanes():
    warps = -(-100 // 32)
    assert 32 * warps / 100 == 1.28


@pytest.mark.skipif(shutil.which("nvcc") is None or find_tool("cuobjdump") is None, reason="no nvcc or no cuobjdump")
@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_the_compiler_has_left_two_filters_and_a_branch_between_them(side, tmp_path):
    (kernel,) = read_code(build(CHAPTER / f"{side}_warp_divergence.cu", ["90a"], cache=tmp_path, root=ROOT).library)
    names = [text.split()[0] for text in kernel.instructions if text != "NOP"]
    rounds = import_file(CHAPTER / "workload_warp_divergence.py").ROUNDS
    assert sum(name in ("FFMA", "FADD", "FMUL") for name in names) > 2 * rounds
    assert names.count("BSSY") == 1
    assert len(names) - 2 * rounds == pytest.approx(28, abs=4)  # what the expectation adds to a filter
