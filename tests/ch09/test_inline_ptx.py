"""ch09:inline_ptx: the hints change no answer and no launch, the bytes are counted, and the demo builds with its own line."""

import re
import shlex
import shutil
import subprocess

import pytest

from common.python.directives import read_directives
from common.python.loader import load_workload
from tests.ch09.sides import CHAPTER, arguments, code_of, constants, text_of
from tests.emulation.emulate import check_side
from tests.teeth import ROOT, assert_teeth

WORKLOAD = load_workload(CHAPTER / "workload_inline_ptx.py")
BASELINE, OPTIMIZED, DEMO = "baseline_inline_ptx.cu", "optimized_inline_ptx.cu", "inline_ptx_example.cu"


@pytest.mark.parametrize("side", [BASELINE, OPTIMIZED])
def test_every_argument_has_something_to_bind(side):
    assert arguments(WORKLOAD, side) == ["received", "slot", "gain", "y", "rows", "cols", "stream"]


def without_ptx(text):
    """The optimized side in C++ alone: what its instructions do but for the caches."""
    return re.sub(r"asm volatile\([^;]*;[^;]*;|asm\([^;]*;[^;]*;", lambda found: "x = *from;" if "ld.global" in found[0] else "", text)


def test_the_side_without_its_ptx_is_right_and_differs_from_the_baseline_in_nothing_else(tmp_path):
    plain = without_ptx(text_of(OPTIMIZED))
    assert "asm" not in plain
    (tmp_path / OPTIMIZED).write_text(plain)
    assert check_side(CHAPTER / "workload_inline_ptx.py", tmp_path / OPTIMIZED) == []

    def code(text):
        kept = re.sub(r"//[^\n]*|__device__ .*?\n}\n|\s*if \(threadIdx.x == 0[^;]*;", "", text, flags=re.DOTALL)
        return kept.replace("load_once(from + j)", "from[j]").split()

    def uncommented(text):
        return re.sub(r"//[^\n]*", "", text)

    assert code(uncommented(text_of(OPTIMIZED))) == code(uncommented(text_of(BASELINE)))


def test_only_whole_groups_of_16_bytes_are_prefetched_and_of_rows_that_the_block_has():
    assert all(shape["cols"] % 4 == 0 for shape in (*WORKLOAD.check_at, WORKLOAD.time_at))
    assert "i + 1 < end) prefetch(received + size_t(slot[i + 1]) * groups, 16 * groups)" in text_of(OPTIMIZED)


def test_the_bytes_and_the_l2_that_the_comments_count():
    rows, cols = WORKLOAD.time_at["rows"], WORKLOAD.time_at["cols"]
    work = WORKLOAD.work(rows=rows, cols=cols)
    assert round(sum(work.values()) / (rows * cols)) == 8
    assert "8 bytes an element" in read_directives(CHAPTER / OPTIMIZED).expects
    assert 4 * cols == 16 << 10
    assert 2048 // constants(OPTIMIZED)["THREADS"] == 8
    assert round(132 * 8 * 4 * cols / 1e6) == 17


def test_both_sides_run_8_blocks_an_sm_with_as_many_loads_in_flight(tmp_path):
    rows = [[text for text in code_of(side, tmp_path / side) if "LDG" in text and ".128" in text] for side in (BASELINE, OPTIMIZED)]
    assert len(rows[0]) == len(rows[1])
    assert all("__launch_bounds__(THREADS, 8)" in text_of(side) for side in (BASELINE, OPTIMIZED))
    assert sum("LTC256B" in text for text in rows[1]) == len(rows[1]) // 2


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, {"rows": 7, "cols": 132})


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("architecture", ["sm_90", "sm_100"])
def test_the_demo_builds_with_its_own_line_and_checks_its_calls(architecture, tmp_path):
    command, run = text_of(DEMO).splitlines()[1].removeprefix("// ").split(" && ")
    assert run == "build/inline_ptx_example"
    built = tmp_path / "demo"
    words = [str(built) if word == run else word.replace("sm_90", architecture) for word in shlex.split(command)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    ended = subprocess.run([built], capture_output=True, text=True, check=False)
    no_gpu = ("CUDA driver", "no CUDA-capable device", "no kernel image")
    assert (ended.returncode == 0) or any(reason in ended.stderr for reason in no_gpu)
