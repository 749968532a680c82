"""ch18:warp_specialization_attention_cuda on stand-ins for Hopper: right in any order of events, and no wait is there for nothing."""

import ctypes
import re

import numpy as np
import pytest
import torch

from common.python.child.sides.loader import load_workload
from tests.ch10.emulated import LAZINESS, build, host_library, inputs_of, skip_without_compiler
from tests.support.cuda_sides import built, kernels_of
from tests.support.teeth import ROOT, accepts

pytestmark = pytest.mark.slow

CHAPTER = ROOT / "ch18"
OPTIMIZED, KERNEL = "optimized_warp_specialization_attention_cuda.cu", "shared_attention_kernel.cuh"
WITH_TURNS = "optimized_warp_specialization_attention_cuda_with_turns.cu"
WORKLOAD = load_workload(CHAPTER / "workload_warp_specialization_attention.py")
ROUNDS = (  # on two multiprocessors, in rings of 2
    {"heads": 2, "queries": 257, "keys": 1000, "causal": 0},  # 6 tiles of queries, 6 tiles of keys each
    {
        "heads": 2,
        "queries": 600,
        "keys": 600,
        "causal": 1,
    },  # 10 tiles of queries; 1 to 4 tiles of keys each, of which half a tile may skip one
)
WAITING = re.compile(r"\b(barrier_wait|__syncthreads|await_turn|wgmma_wait<\d>)\(")
LINES = (CHAPTER / KERNEL).read_text().splitlines()
WAITS = [(number, line.strip()) for number, line in enumerate(LINES, 1) if WAITING.search(line)]
# Turns change when products start, and no answer.
FOR_SPEED = "if constexpr (A::TURNS) await_turn(own);"
# A warpgroup waits for values that it skips, so that it never takes their phase for the one after the next. With turns it could not:
# before it waits for that one, the other warpgroup has waited for these values and has passed the turn. No order that was tried shows it.
FOR_ORDER = "barrier_wait(&shared.full_v[last.stage], last.parity);"


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    skip_without_compiler()
    return build(WITH_TURNS, tmp_path_factory.mktemp("side"), CHAPTER)


@pytest.fixture(scope="module")
def without_turns(tmp_path_factory):
    skip_without_compiler()
    return build(OPTIMIZED, tmp_path_factory.mktemp("step"), CHAPTER)


def is_right(side, shape, **how):
    values = inputs_of(WORKLOAD, shape)
    y = torch.full((shape["heads"], shape["queries"], 128), torch.nan, dtype=torch.bfloat16)
    side.launch(values["q"], values["k"], values["v"], y, *shape.values(), **how)
    reference = WORKLOAD.reference(*(values[name].double() for name in "qkv"), shape["causal"])
    return accepts(WORKLOAD.tolerance("optimized"), [y], [reference])


@pytest.mark.parametrize("shape", WORKLOAD.check_at, ids=str)
@pytest.mark.parametrize("multiprocessors", [1, 4])
def test_right_however_late_its_copies_and_products_are(emulated, shape, multiprocessors):
    takes_seconds = shape["queries"] > 1000
    for laziness in ["by chance"] if takes_seconds else LAZINESS:
        for seed in (1,) if takes_seconds else (1, 2):
            assert is_right(emulated, dict(shape), seed=seed, laziness=laziness, multiprocessors=multiprocessors), (laziness, seed)


@pytest.mark.parametrize("shape", [shape for shape in (*WORKLOAD.check_at, *ROUNDS) if shape["queries"] <= 1000], ids=str)
def test_right_without_turns(without_turns, shape):
    for laziness in LAZINESS:
        for seed in range(4):
            assert is_right(without_turns, dict(shape), seed=seed, laziness=laziness), (laziness, seed)


def test_all_waits_were_found():
    assert len(WAITS) == 15
    assert {FOR_SPEED, FOR_ORDER} <= {text for _, text in WAITS}


@pytest.mark.parametrize(("number", "text"), [wait for wait in WAITS if wait[1] not in (FOR_SPEED, FOR_ORDER)])
def test_no_wait_can_be_left_out(emulated, number, text):
    is_needed(emulated, number, text)


@pytest.mark.parametrize(("number", "text"), [wait for wait in WAITS if wait[1] != FOR_ORDER and "await_turn" not in wait[1]])
def test_no_wait_can_be_left_out_without_turns(without_turns, number, text):
    is_needed(without_turns, number, text)


def is_needed(emulated, number, text):
    for laziness in ("late", "by chance", "at once"):
        for seed in range(8):
            for shape in ROUNDS:
                try:
                    if not is_right(emulated, shape, seed=seed, laziness=laziness, skipped=f"{KERNEL}:{number}"):
                        return
                except RuntimeError:
                    return
    pytest.fail(f"line {number}: right without `{text}`, in every order that was tried")


def test_who_starts_products_without_a_turn_is_late_for_the_others_and_right(emulated):
    (number,) = [number for number, text in WAITS if text == FOR_SPEED]
    for shape in ROUNDS:
        assert is_right(emulated, shape, skipped=f"{KERNEL}:{number}")


@pytest.mark.parametrize("side", [OPTIMIZED, WITH_TURNS])
def test_ptxas_spills_nothing_and_does_not_serialize(side):
    log = built(CHAPTER / side).log
    assert log.count("0 bytes spill stores, 0 bytes spill loads") == 2  # causal and not
    assert "serialized" not in log


def code_of(causal):
    (kernel,) = [kernel for kernel in kernels_of(CHAPTER / WITH_TURNS) if f", {'true' if causal else 'false'}>" in kernel.name]
    return kernel.instructions


def loop_of(code):
    """A step, from the wait for the turn to the wait for its products of values."""
    turn = max(place for place, instruction in enumerate(code) if instruction.startswith("BAR.SYNC"))
    waits = [place for place, instruction in enumerate(code) if place > turn and instruction.startswith("WARPGROUP.DEPBAR")]
    return code[turn : waits[1]]


@pytest.mark.parametrize("causal", [0, 1])
def test_a_tiles_exponentials_lie_between_the_start_of_the_products_of_values_and_the_wait_for_them(causal):
    names = ("HGMMA", r"WARPGROUP\.DEPBAR", r"MUFU\.EX2", r"F2FP", r"BAR\.SYNC", r"BAR\.ARV")
    code = re.findall(rf"\b(?:{'|'.join(names)})\b", "\n".join(code_of(causal)))
    loop = code[code.index("BAR.ARV", code.index("HGMMA")) :]  # after products of scores and of values were started
    assert loop[1] == "WARPGROUP.DEPBAR"
    until = loop.index("WARPGROUP.DEPBAR", 2)
    assert set(loop[2:until]) == {"MUFU.EX2"}
    assert loop[2:until].count("MUFU.EX2") == 192 // 2 + 2
    assert loop[until + 1] == "F2FP"


def test_a_causal_step_masks_nothing_and_is_as_short():
    full, causal = loop_of(code_of(0)), loop_of(code_of(1))
    assert len(full) > 500
    assert len(causal) <= len(full) + 8
    assert not any(instruction.startswith("FSEL") for instruction in causal)


TILES = """#include "cuda_runtime.h"
#include "common/cuda/launch.cuh"
#include "shared_attention.cuh"
template <bool CAUSAL>
int taken(int block, int heads, int queries, int keys, int* told) {
    using A = Attention<2, 192, 2>;
    const Tiles<A, CAUSAL> tiles(heads, queries, keys);
    blockIdx.x = block;
    int rounds = 0;
    for (int tile = block; tile < tiles.count; tile = tiles.after(tile, rounds++)) {
        const int each[] = {tile, tiles.head(tile), tiles.first(tile), tiles.steps(tile, ROWS), tiles.steps(tile, A::QUERIES)};
        for (int value : each) *told++ = value;
    }
    return rounds;
}
extern "C" int tiles(int block, int blocks, int heads, int queries, int keys, int causal, int* told) {
    gridDim.x = blocks;
    return causal ? taken<true>(block, heads, queries, keys, told) : taken<false>(block, heads, queries, keys, told);
}
"""


@pytest.fixture(scope="module")
def tiles_of(tmp_path_factory):
    """What each block takes: rows of a tile's number, head and first query, and the steps of its first half and of all of it."""
    library = host_library(TILES, tmp_path_factory.mktemp("tiles"), CHAPTER)

    def taken(blocks, shape):
        found = []
        for block in range(blocks):
            told = np.zeros((10000, 5), np.int32)
            rounds = library.tiles(block, blocks, *shape.values(), told.ctypes.data_as(ctypes.c_void_p))
            found.append(told[:rounds])
        return found

    return taken


@pytest.mark.parametrize("shape", [*WORKLOAD.check_at, *WORKLOAD.time_at.values(), *ROUNDS], ids=str)
@pytest.mark.parametrize("blocks", [1, 2, 132])
def test_blocks_take_every_tile_once_and_no_tile_of_keys_that_nobody_sees(tiles_of, shape, blocks):
    taken = np.concatenate(tiles_of(blocks, shape)).tolist()
    heads, queries, keys, causal = shape.values()
    every = [(head, first) for head in range(heads) for first in range(0, queries, 128)]
    assert sorted(number for number, *_ in taken) == list(range(len(every)))
    assert sorted((head, first) for _, head, first, *_ in taken) == every
    for _, _, first, half, whole in taken:
        for rows, steps in ((64, half), (128, whole)):
            seen = min(keys, queries, first + rows) if causal else keys
            assert 192 * (steps - 1) < seen <= 192 * steps
        assert whole - half in (0, 1)


@pytest.mark.parametrize("name", WORKLOAD.time_at)
def test_causal_tiles_are_taken_longest_first_and_blocks_get_equal_work(tiles_of, name):
    blocks = tiles_of(132, WORKLOAD.time_at[name])
    steps = [row[4] for row in sorted(np.concatenate(blocks).tolist())]
    assert steps == sorted(steps, reverse=True)
    work = [block[:, 4].sum() for block in blocks]
    assert max(work) <= 1.01 * np.mean(work)
