"""ch07:vectorized_copy and ch07:hbm_copy: the sides differ in their vector alone, and a vector is what memory wants in flight."""

import re

from common.python.directives import read_directives
from tests.ch07.sides import CHAPTER, constants, text_of

WIDE = ("optimized_vectorized_copy.cu", "optimized_vectorized_copy_32b.cu")
WHOLE = "optimized_hbm_copy.cu"

SMS, THREADS_AN_SM = 132, 2048
COPY_BYTES_A_NS = 4300  # what an H200 copies, read and written
LOADED_NS = 650


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


def test_the_copy_of_the_whole_memory_is_the_vector_copy_and_no_more():
    def code(side):
        return re.sub(r"//.*", "", text_of(side)).split()

    assert code(WHOLE) == code(WIDE[0])
    assert constants(WHOLE) == {"THREADS": 256, "WIDTH": 4}
