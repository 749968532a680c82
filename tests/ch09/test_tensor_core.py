"""ch09:tensor_core: the cycles that the ratio is expected from are those of the machine code, and the fragments lie where PTX says."""

import re
import shutil

import pytest
import torch

from common.python.child.sides.compare import upcast
from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from tests.ch07.sides import wavefronts
from tests.ch09.bf16_tiles import TILES, l1_cycles, loads_of_a_block, place_of
from tests.ch09.sides import CHAPTER, arguments, code_of, constants, text_of, values_at
from tests.ch10 import model
from tests.emulation.emulate import check_side
from tests.teeth import ROOT, accepts, assert_teeth

WORKLOAD = load_workload(CHAPTER / "workload_tensor_core.py")
BASELINE, OPTIMIZED = "baseline_tensor_core.cu", "optimized_tensor_core.cu"
FP8_BITS = 3  # of mantissa of e4m3, the precision below
DEEP = {"m": 32, "n": 32, "k": 4096}


@pytest.mark.parametrize("side", [BASELINE, OPTIMIZED])
def test_every_argument_has_something_to_bind(side):
    assert arguments(WORKLOAD, side) == ["a", "b", "c", "m", "n", "k", "stream"]


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
def codes(tmp_path_factory):
    return [code_of(side, tmp_path_factory.mktemp("built")) for side in (BASELINE, OPTIMIZED)]


def count(code, pattern):
    return sum(bool(re.search(pattern, text)) for text in code)


def test_the_ratio_expected_is_that_of_the_cycles_a_pair_of_tiles_takes(codes):
    """Prose against formula: the counts are those of the machine code, the rates are assumed."""
    tile, depth = constants(TILES)["TILE"], constants(TILES)["DEPTH"]
    warps, kernels = 8, 2
    assert count(codes[0], r"\bFFMA\b") == 2 * 64 * kernels  # two of `depth` steps
    assert count(codes[0], r"\bLDS(?!\.)") == 8 * kernels
    assert count(codes[0], r"\bLDS\.128\b") == 2 * kernels
    assert count(codes[1], r"\bHMMA\b") == 16 * depth // 16 * kernels
    assert count(codes[1], r"\bLDSM\b") == 6 * depth // 16 * kernels

    counted = re.search(r"// (\d+) FMAs: (\d+) loads of 4 bytes, (\d+) of 16, and (\d+) conversions", text_of(BASELINE)).groups()
    issued = warps * depth // 2 * sum(map(int, counted)) // model.SCHEDULERS
    l1 = l1_cycles()
    mma = tile * tile * depth / model.MMA_SYNC
    assert model.MMA_SYNC / model.WGMMA == 5 / 8
    ratio, *cycles = re.search(
        r"^(\d+)x, .* (\d+) cycles to issue, or (\d+) in the L1; mma.sync takes (\d+), at 5/8 of the wgmma rate$",
        read_directives(CHAPTER / OPTIMIZED).expects,
    ).groups()
    assert [int(found) for found in cycles] == [issued, l1, round(mma)]
    assert mma < l1
    assert int(ratio) == round(issued / l1)


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
    assert check_side(CHAPTER / "workload_tensor_core.py", tmp_path / OPTIMIZED) == []


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, DEEP, reduced=("a", 1), bits=FP8_BITS)


def test_the_tolerance_rejects_sums_and_results_of_bf16():
    values = values_at(WORKLOAD, DEEP)
    expected = WORKLOAD.reference(**upcast(values, torch.float64))
    tolerance = WORKLOAD.tolerance("optimized")
    assert accepts(tolerance, [WORKLOAD.reference(**upcast(values, torch.float32))], [expected])
    assert not accepts(tolerance, [expected.bfloat16()], [expected])
    halves = [WORKLOAD.reference(values["a"][:, part].double(), values["b"][part].double()) for part in (slice(0, 2048), slice(2048, 4096))]
    assert not accepts(tolerance, [sum(half.bfloat16().double() for half in halves)], [expected])
