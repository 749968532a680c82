"""ch09:tensor_core: its loads meet no bank conflict, its fragments lie where PTX says, and its sums are float32."""

import re
import shutil

import pytest
import torch

from common.python.child.sides.compare import upcast
from common.python.child.sides.loader import load_workload
from common.python.session.session import BUILD_CACHE
from tests.ch07.sides import wavefronts
from tests.ch09.bf16_tiles import TILES, l1_cycles, loads_of_a_block, place_of
from tests.ch09.sides import CHAPTER, code_of, constants, text_of, values_at
from tests.ch10 import model
from tests.emulation.emulate import check_side
from tests.support.teeth import ROOT, accepts

WORKLOAD = load_workload(CHAPTER / "workload_tensor_core.py")
BASELINE, OPTIMIZED = "baseline_tensor_core.cu", "optimized_tensor_core.cu"
DEEP = {"m": 32, "n": 32, "k": 4096}


def test_the_sides_differ_in_what_they_do_with_a_tile():
    def around(side):
        return re.findall(
            r"^    (?:Groups|__shared__|for \(int first).*|^        (?:put|__sync|next).*|^    (?:dim3|auto|kernel).*",
            text_of(side),
            re.MULTILINE,
        )

    assert around(BASELINE) == around(OPTIMIZED)
    assert len(around(BASELINE)) == 9


@pytest.fixture(scope="module")
def codes():
    return [code_of(side) for side in (BASELINE, OPTIMIZED)]


def count(code, pattern):
    return sum(bool(re.search(pattern, text)) for text in code)


def test_the_l1_takes_longer_for_a_pair_of_tiles_than_mma_sync(codes):
    """The counts are those of the machine code, the rates are assumed."""
    tile, depth = constants(TILES)["TILE"], constants(TILES)["DEPTH"]
    kernels = 2
    assert count(codes[0], r"\bFFMA\b") == 2 * 64 * kernels  # two of `depth` steps
    assert count(codes[0], r"\bLDS(?!\.)") == 8 * kernels
    assert count(codes[0], r"\bLDS\.128\b") == 2 * kernels
    assert count(codes[1], r"\bHMMA\b") == 16 * depth // 16 * kernels
    assert count(codes[1], r"\bLDSM\b") == 6 * depth // 16 * kernels

    assert model.MMA_SYNC / model.WGMMA == 5 / 8
    assert tile * tile * depth / model.MMA_SYNC < l1_cycles()


@pytest.mark.parametrize("width", ["DEPTH", "TILE"])
def test_rows_of_16_bytes_below_each_other_meet_no_bank_conflict(width):
    values = constants(TILES)
    row = 2 * (values[width] + values["PAD"])
    ldmatrix = [row * (lane % 16) + 16 * (lane // 16) for lane in range(32)]
    assert wavefronts(ldmatrix, 16) == 4
    assert wavefronts([2 * values[width] * (lane % 16) for lane in range(32)], 16) > 4


def test_stores_to_the_tiles_and_the_baselines_loads_meet_no_bank_conflict():
    values = constants(TILES)
    a_row, b_row = (2 * (values[width] + values["PAD"]) for width in ("DEPTH", "TILE"))
    for first in range(0, values["THREADS"], 32):
        warp = range(first, first + 32)
        places = [place_of(thread) for thread in warp]
        assert wavefronts([a_row * place["a_row"] + 2 * place["a_col"] for place in places], 16) == 4
        assert wavefronts([b_row * place["b_row"] + 2 * place["b_col"] for place in places], 16) == 4
    assert wavefronts([a_row * (lane // 8) for lane in range(32)], 4) == 1
    assert wavefronts([16 * (lane % 8) for lane in range(32)], 16) == 4


def test_a_load_of_a_tile_takes_the_fewest_passes_of_the_l1():
    values = constants(TILES)
    tile_bytes, pieces = 2 * values["TILE"] * values["DEPTH"], (2 * values["DEPTH"], 128)
    assert loads_of_a_block() == tuple(tile_bytes // piece for piece in pieces)


def test_the_tensor_cores_side_is_right_with_fragments_as_ptx_describes_them(tmp_path):
    for file in (OPTIMIZED, TILES):
        shutil.copy(CHAPTER / file, tmp_path)
    shutil.copy(ROOT / "tests/ch09/mma_emulated.cuh", tmp_path / "shared_mma.cuh")
    assert check_side(CHAPTER / "workload_tensor_core.py", tmp_path / OPTIMIZED, cache=BUILD_CACHE) == []


def test_the_tolerance_rejects_sums_and_results_of_bf16():
    values = values_at(WORKLOAD, DEEP)
    expected = WORKLOAD.reference(**upcast(values, torch.float64))
    tolerance = WORKLOAD.tolerance("optimized")
    assert accepts(tolerance, [WORKLOAD.reference(**upcast(values, torch.float32))], [expected])
    assert not accepts(tolerance, [expected.bfloat16()], [expected])
    halves = [WORKLOAD.reference(values["a"][:, part].double(), values["b"][part].double()) for part in (slice(0, 2048), slice(2048, 4096))]
    assert not accepts(tolerance, [sum(half.bfloat16().double() for half in halves)], [expected])
