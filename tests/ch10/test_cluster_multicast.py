"""What multicast is expected to gain follows from the bytes of a step of small tiles: through the L2, a port and shared memory.

That both sides are right, and not without one of their waits, is in test_matmul_pipeline.py.
"""

import re

import pytest

from common.python.directives import read_directives
from common.python.loader import load_workload
from tests.ch10 import model
from tests.ch10.emulated import CHAPTER
from tests.cuda_sides import constants_of
from tests.teeth import ROOT

SMALL, WORKLOAD = CHAPTER / "shared_cluster_multicast.cuh", CHAPTER / "workload_cluster_multicast.py"
HEADERS = (ROOT / "common/cuda/operands.cuh", ROOT / "common/cuda/warpgroup.cuh", CHAPTER / "shared_tile.cuh")
CONSTANTS = constants_of(*HEADERS, CHAPTER / "shared_matmul_pipeline.cuh", SMALL)
ROWS, COLUMNS, TILE_K, TILE_M = (CONSTANTS[name] for name in ("ROWS", "COLUMNS", "TILE_K", "TILE_M"))
A, B = ROWS * TILE_K * 2, COLUMNS * TILE_K * 2  # bytes of a step
TILES, STEPS, OVERHEAD_NS = 128, 128, 4000
SAID = re.sub(r"\s+", " ", WORKLOAD.read_text())
SHAPES = load_workload(WORKLOAD).timed_shapes


def l2_ns(bytes_of_a_step, blocks=TILES):
    """What the L2 takes for a step of so many blocks."""
    return blocks * bytes_of_a_step / model.L2 / 1000


def shared_cycles(rows, columns):
    """What shared memory takes for a step: products of 64 rows each read their operands, which the TMA has written."""
    return (rows // 64 * (64 + columns) + rows + columns) * TILE_K * 2 / model.SHARED


def test_a_timed_shape_is_a_tile_for_nearly_every_sm():
    for shape in SHAPES.values():
        assert shape["m"] // ROWS * (shape["n"] // COLUMNS) == TILES <= model.SMS
        assert shape["k"] // TILE_K == STEPS


def test_the_ratio_expected_is_that_of_the_bytes_through_the_l2_and_through_shared_memory():
    """Prose against formula."""
    products, cycles, clock = ROWS * COLUMNS * TILE_K / model.WGMMA, shared_cycles(ROWS, COLUMNS), 1.7
    assert cycles == (A + B) / model.L2_PORT
    alone, shared, own = round(l2_ns(A + B)), round(l2_ns(A + B / 2)), round(cycles / clock)
    assert f"tiles of 64 x 128 is {(A + B) >> 10} KB for {products:.0f} cycles of products" in SAID
    assert f"the L2 gives {model.L2} TB/s" in SAID
    assert f"a step takes {alone} ns, or {shared} where two blocks share b" in SAID
    assert (
        f"still takes {(A + B) >> 10} KB at {model.L2_PORT} bytes a cycle: {cycles:.0f} cycles for either, {own} ns at {clock} GHz" in SAID
    )
    assert f"for {100 * products / cycles:.0f} %" in SAID
    times = [STEPS * step + OVERHEAD_NS for step in (alone, own)]
    assert "take {:.0f} us: {:.0f} us in all, and {:.0f}.".format(*(ns / 1000 for ns in (OVERHEAD_NS, *times))) in SAID

    expected = read_directives(CHAPTER / "optimized_cluster_multicast.cu").expects.replace("L2", "")
    ratio, *named = (float(number) for number in re.findall(r"\d+(?:\.\d+)?", expected))
    assert ratio == round(times[0] / times[1], 1)
    assert named == [(A + B) >> 10, (A + B // 2) >> 10, own, (A + B) >> 10, alone, OVERHEAD_NS / 1000]


def test_the_rate_of_the_l2_is_what_it_gave_tiles_of_192_columns():
    """Prose against formula."""
    took = re.search(r"these tiles another (\d+)", read_directives(CHAPTER / "optimized_wgmma_triple_overlap.cu").expects)
    tiles, steps, step = 8192 // 128 * -(-8192 // 192), 8192 // TILE_K, (128 + 192) * TILE_K * 2
    assert tiles * steps * step / float(took[1]) / 1e6 == pytest.approx(model.L2, abs=0.05)


def test_memory_is_read_meanwhile():
    """Prose against formula."""
    shapes = [(shape["m"], shape["n"], shape["k"]) for shape in SHAPES.values()]
    took = [round(2 * (k * (m + n) + m * n) / 4.3e6) for m, n, k in shapes]
    assert "DRAM is read in {} us, or with few rows in {}.".format(*took) in SAID
    assert max(took) * 1000 < STEPS * 226


def test_a_larger_tile_is_limited_by_something_else_or_leaves_sms_idle():
    """Prose against formula."""
    loaded, cycles = 2 * TILE_M * TILE_K * 2, shared_cycles(TILE_M, 128)
    l2 = l2_ns(loaded, model.SMS)
    assert f"take the L2 {l2:.0f} ns a step and shared memory {cycles:.0f} cycles, which are {cycles / 1.57:.0f} ns at 1.57 GHz" in SAID
    assert f": {l2 / (cycles / 1.57):.2f}x at most" in SAID
    square = SHAPES["square"]
    on_half = cycles / 1.9
    assert f"Of 128 x 128 it has {square['m'] // 128 * square['n'] // 128}, which take {on_half:.0f} ns a step, at 1.9 GHz" in SAID
    assert on_half > l2_ns(A + B)


def test_the_ring_fits():
    stages = int(re.search(r"Pipeline<1, COLUMNS, (\d+)>", SMALL.read_text())[1])
    assert stages * (A + B) == 192 << 10
    assert stages * (A + B) + ROWS * CONSTANTS["PANEL"] * 2 + 2048 <= 227 << 10
    said = SMALL.read_text().replace("\n// ", " ")
    assert f"read all of it once, {(A + B) >> 10} KB more, in {ROWS * COLUMNS * TILE_K // model.WGMMA} cycles" in said
    assert f"shared memory takes {shared_cycles(ROWS, COLUMNS):.0f} for it" in said
