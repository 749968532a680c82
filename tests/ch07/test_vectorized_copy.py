"""ch07:vectorized_copy and ch07:hbm_copy: vectors take every float once, and what is in flight is what the expectations count."""

import re

import pytest
import torch

from common.python.child.sides.loader import import_file, load_workload
from common.python.pairs.directives import read_directives
from tests.ch07.sides import CHAPTER, SECTOR, arguments, constants, text_of
from tests.teeth import assert_teeth

VECTORIZED, HBM = (load_workload(CHAPTER / f"workload_{pair}.py") for pair in ("vectorized_copy", "hbm_copy"))
BASELINE, WIDE = "baseline_vectorized_copy.cu", ("optimized_vectorized_copy.cu", "optimized_vectorized_copy_32b.cu")
WHOLE = "optimized_hbm_copy.cu"
SIDES = {BASELINE: VECTORIZED, WIDE[0]: VECTORIZED, WIDE[1]: VECTORIZED, WHOLE: HBM}

SMS, THREADS_AN_SM = 132, 2048
COPY_BYTES_A_NS = 4300  # what an H200 copies, read and written
LOADED_NS = 650


@pytest.mark.parametrize("side", SIDES)
def test_every_argument_has_something_to_bind(side):
    assert arguments(SIDES[side], side) == ["x", "y", "n", "stream"]


@pytest.mark.parametrize("side", SIDES)
def test_a_request_touches_the_sectors_that_the_comment_counts(side):
    width = constants(side).get("WIDTH", 1)
    assert f"all 32 bytes of each of {32 * 4 * width // SECTOR} sectors" in text_of(side)


def test_the_vector_sides_differ_in_their_vector_only():
    def code(side):
        code = re.sub(r"struct alignas\(32\) Eight \{[^}]*\};", "", re.sub(r"//.*", "", text_of(side)))
        return re.sub(r"\b(float4|Eight)\b", "Vector", re.sub(r"WIDTH = \d", "WIDTH", code)).split()

    assert code(WIDE[0]) == code(WIDE[1])


def test_needs_leave_hopper_out_and_name_what_runs_there():
    directives = read_directives(CHAPTER / WIDE[1])
    assert (directives.needs, directives.instead) == (("ld_256bit",), "ch07:vectorized_copy")


def test_one_float_a_thread_is_less_than_a_loaded_memory_wants_and_a_vector_is_more():
    wanted = COPY_BYTES_A_NS / 2 / SMS * LOADED_NS  # bytes in flight an SM: half of what is copied is read
    assert 4 * THREADS_AN_SM < wanted < 16 * THREADS_AN_SM
    scalar = 4 * THREADS_AN_SM / LOADED_NS * SMS * 2
    for side in (*WIDE, WHOLE):
        ratio = float(read_directives(CHAPTER / side).expects.partition("x,")[0])
        assert ratio == pytest.approx(COPY_BYTES_A_NS / scalar, abs=0.05)
    assert f"{wanted / 1000:.1f} KB in flight" in text_of(WIDE[0])
    assert f"{scalar / 1000:.1f} TB/s" in text_of(WHOLE)


def test_the_copy_of_the_whole_memory_is_the_vector_copy_and_no_more():
    def code(side):
        return re.sub(r"//.*", "", text_of(side)).split()

    assert code(WHOLE) == code(WIDE[0])
    assert constants(WHOLE) == {"THREADS": 256, "WIDTH": 4}


def test_what_is_in_flight_is_what_the_comments_count():
    threads, width = constants(WHOLE).values()
    a_thread, text = 4 * width, text_of(WHOLE)
    assert f"{a_thread * THREADS_AN_SM >> 10} KB in flight an SM" in text
    assert f"within {a_thread * THREADS_AN_SM * SMS >> 20} MB" in text
    assert f"{a_thread * threads >> 10} KB a block" in text
    apart, most = map(float, re.search(r"Blocks start ([\d.]+) ns apart: with 1 KB each, as in the baseline, ([\d.]+) TB/s", text).groups())
    assert 4 * constants(BASELINE)["THREADS"] == 1 << 10
    assert 2 * (1 << 10) / apart / 1000 == pytest.approx(most, abs=0.05)


@pytest.mark.parametrize("workload", [VECTORIZED, HBM], ids=["vectorized_copy", "hbm_copy"])
def test_the_tolerance_takes_nothing_wrong(workload):
    assert_teeth(workload, workload.check_at[-1])


@pytest.mark.parametrize("shape", HBM.check_at, ids=str)
def test_the_library_gives_the_reference(shape):
    x = torch.arange(shape["n"], dtype=torch.float32)
    answer = import_file(CHAPTER / "library_hbm_copy.py").prepare(x)()
    assert torch.equal(answer, x)
    assert answer.data_ptr() != x.data_ptr()
