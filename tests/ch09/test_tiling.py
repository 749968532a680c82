"""ch09:tiling: its machine code has a load for 16 FMAs and asks early, and no request meets a bank conflict."""

import re

import pytest
import torch

from common.python.loader import load_workload
from tests.ch07.sides import wavefronts
from tests.ch09.sides import CHAPTER, code_of, constants, text_of
from tests.ch10 import model

WORKLOAD = load_workload(CHAPTER / "workload_tiling.py")
BASELINE, OPTIMIZED = "baseline_tiling.cu", "optimized_tiling.cu"
WARPS = [range(first, first + 32) for first in range(0, 256, 32)]


def count(code, name):
    return sum(bool(re.search(rf"\b{name}(?![.\w])", text)) for text in code)


@pytest.fixture(scope="module")
def codes():
    return [code_of(side) for side in (BASELINE, OPTIMIZED)]


def test_shared_memory_takes_two_cycles_for_an_fma_and_a_quarter_in_register_tiles(codes):
    baseline, optimized = codes
    assert [count(baseline, name) for name in ("FFMA", "LDS", "LDS.128")] == [32, 32, 8]
    depth, kernels = constants(OPTIMIZED)["DEPTH"], 2
    assert [count(optimized, name) for name in ("FFMA", "LDS", "LDS.128")] == [64 * depth * kernels, 0, 4 * depth * kernels]
    # 32 lanes get 4 bytes in a cycle of shared memory, 16 in four; an SM issues 4 FMAs in a cycle.
    cycles = (32 * 1 + 8 * 4) / 32, 4 * 4 / 64
    assert cycles == (2, 1 / 4)
    assert cycles[1] == 32 / model.FFMA


def test_the_next_tiles_are_asked_for_with_half_the_fmas_to_go(codes):
    barriers = [number for number, text in enumerate(codes[1]) if "BAR.SYNC" in text]
    for barrier in barriers:
        names = [found[1] for text in codes[1][barrier:] if (found := re.search(r"\b(FFMA|LDG|BRA)\b", text))]
        loop = names[: names.index("BRA")]
        last = max(number for number, name in enumerate(loop) if name == "LDG")
        assert loop[last:].count("FFMA") >= 240
        assert loop.count("FFMA") == 512


FFMA = re.compile(r"FFMA \w+, (\w+)(\.reuse)?, (\w+)(\.reuse)?, (\w+)(\.reuse)?")


def fetched(code):
    """Operands that FMAs take from the register file: an instruction keeps those that it marks for the next one's same place."""
    count, kept = 0, [None] * 3
    for text in code:
        found = FFMA.match(text)
        names, marks = found.groups()[::2] if found else [], found.groups()[1::2] if found else []
        count += sum(name != old for name, old in zip(names, kept, strict=False))
        kept = [name if mark else None for name, mark in zip(names, marks, strict=True)] or [None] * 3
    return count


def test_fmas_keep_most_of_their_operands_from_one_to_the_next(codes):
    assert (
        fetched(["FFMA R1, R2.reuse, R3, R1", "FFMA R4, R2, R5.reuse, R4", "FFMA R6, R2, R5, R6", "BRA 0", "FFMA R7, R2, R5, R7"])
        == 3 + 2 + 2 + 3
    )
    assert fetched(codes[1]) / count(codes[1], "FFMA") < 2.2


def indices(thread):
    """The indices into the tiles that the optimized side's source declares, for a thread."""
    values = {**constants(OPTIMIZED), "threadIdx": type("Index", (), {"x": thread})}
    for first in ("a_row", "lane", "row"):
        declarations = re.search(rf"const int ({first} = [^;]+);", text_of(OPTIMIZED))[1]
        for name, expression in re.findall(r"(\w+) = (.+?)(?=, \w+ = |$)", declarations):
            values[name] = eval(expression.replace("/", "//"), {}, values)
    return values


INDICES = [indices(thread) for thread in range(256)]


def addresses(warp, row_name, col_name, length, shift=0):
    """Byte addresses of [row + shift][col] by lane, in rows of `length` floats."""
    return [4 * ((INDICES[t][row_name] + shift) * length + INDICES[t][col_name]) for t in warp]


def test_no_request_to_shared_memory_meets_a_bank_conflict():
    tile, pad = constants(OPTIMIZED)["TILE"], constants(OPTIMIZED)["PAD"]
    for warp in WARPS:
        for i in range(4):  # a_tile[a_col + i][a_row]
            assert wavefronts(addresses(warp, "a_col", "a_row", tile + pad, i), 4) == 1
        assert wavefronts(addresses(warp, "b_row", "b_col", tile), 16) == 4
        for name, across in (("row", 4), ("col", 8)):
            request = [4 * INDICES[t][name] for t in warp]
            assert len(set(request)) == across
            assert len({address % 128 for address in request}) == across  # one turn would do for all of them
    unpadded = addresses(WARPS[0], "a_col", "a_row", tile)
    assert wavefronts(unpadded, 4) == 2


def test_lanes_that_differ_in_bit_0_share_a_column_and_in_bit_1_a_row():
    for lane in range(32):
        assert INDICES[lane]["col"] == INDICES[lane ^ 1]["col"]
        assert INDICES[lane]["row"] == INDICES[lane ^ 2]["row"]


def test_the_threads_of_a_block_make_every_element_once():
    made = [
        (INDICES[t]["row"] + i % 4 + i // 4 * 16, INDICES[t]["col"] + j % 4 + j // 4 * 32)
        for t in range(256)
        for i in range(8)
        for j in range(8)
    ]
    assert len(set(made)) == len(made) == 128 * 128
    assert max(made) == (127, 127)


def test_the_library_asks_for_no_tf32():
    assert 'fp32_precision = "ieee"' in text_of("library_tiling.py")
    assert torch.float32 is WORKLOAD.outputs(m=1, n=1, k=1)["c"].dtype
