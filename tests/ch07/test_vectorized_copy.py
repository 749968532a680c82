"""ch07:vectorized_copy and ch07:hbm_copy: the sides differ in their vector alone, and a vector per thread is enough in flight."""

import re

import pytest

from common.python.pairs.directives import read_directives
from tests.ch07.sides import CHAPTER, constants, text_of
from tests.support.cuda_sides import kernels_of

WIDE = ("optimized_vectorized_copy.cu", "optimized_vectorized_copy_32b.cu")
WHOLE = "optimized_hbm_copy.cu"
FLOATS, VECTORS = "optimized_vectorized_copy_four_floats.cu", "optimized_hbm_copy_four_vectors.cu"

THREADS_PER_SM = 2048
LOADED_NS = 650
CARDS = {"h200": (4300, 132), "b200": (8000, 148)}
"""Bytes copied per ns, read and written, and SMs: an H200's as measured, a B200's as published."""


def test_the_vector_sides_differ_in_their_vector_only():
    def code(side):
        code = re.sub(r"struct alignas\(32\) Eight \{[^}]*\};", "", re.sub(r"//.*", "", text_of(side)))
        return re.sub(r"\b(float4|Eight)\b", "Vector", re.sub(r"WIDTH = \d", "WIDTH", code)).split()

    assert code(WIDE[0]) == code(WIDE[1])


def test_needs_leave_hopper_out_and_name_what_runs_there():
    directives = read_directives(CHAPTER / WIDE[1])
    assert (directives.needs, directives.instead) == (("ld_256bit",), "ch07:vectorized_copy")


@pytest.mark.parametrize(("bytes_per_ns", "sms"), CARDS.values(), ids=CARDS)
def test_one_float_per_thread_is_fewer_bytes_in_flight_than_dram_needs_and_a_vector_is_more(bytes_per_ns, sms):
    needed_per_sm = bytes_per_ns / 2 / sms * LOADED_NS  # half of what is copied is read
    assert 4 * THREADS_PER_SM < needed_per_sm < 16 * THREADS_PER_SM


def test_the_copy_of_the_whole_memory_is_the_vector_copy_and_no_more():
    def code(side):
        return re.sub(r"//.*", "", text_of(side)).split()

    assert code(WHOLE) == code(WIDE[0])
    assert constants(WHOLE) == {"THREADS": 256, "WIDTH": 4}


def test_four_floats_are_the_bytes_and_the_blocks_of_one_vector():
    floats, vector = constants(FLOATS), constants(WIDE[0])
    assert floats["FLOATS"] == vector["WIDTH"]
    assert floats["THREADS"] == vector["THREADS"]


@pytest.mark.parametrize(("side", "load", "store"), [(FLOATS, "LDG.E.CONSTANT", "STG.E"), (VECTORS, "LDG.E.128.CONSTANT", "STG.E.128")])
def test_a_thread_of_a_step_has_four_loads_in_flight_before_its_first_store(side, load, store):
    (kernel,) = kernels_of(CHAPTER / side)
    accesses = [name for text in kernel.instructions for name in text.split()[:2] if name.startswith(("LDG", "STG"))]
    assert accesses[:8] == [load] * 4 + [store] * 4
