"""ch10:cluster_multicast: what its timed shapes and its ring are chosen for.

That both sides are right, and not without one of their waits, is in test_matmul_pipeline.py.
"""

import re

from common.python.child.sides.loader import load_workload
from tests.ch10 import model
from tests.ch10.emulated import CHAPTER
from tests.support.cuda_sides import constants_of
from tests.support.teeth import ROOT

SMALL = CHAPTER / "shared_cluster_multicast.cuh"
HEADERS = (ROOT / "common/cuda/operands.cuh", ROOT / "common/cuda/warpgroup.cuh", CHAPTER / "shared_tile.cuh")
CONSTANTS = constants_of(*HEADERS, CHAPTER / "shared_matmul_pipeline.cuh", SMALL)
ROWS, COLUMNS, TILE_K = (CONSTANTS[name] for name in ("ROWS", "COLUMNS", "TILE_K"))
A, B = ROWS * TILE_K * 2, COLUMNS * TILE_K * 2  # bytes of a step
LINE, DEPTH = 128, 8192
FILLED = 120  # SMs of an H200 that clusters of 4 or of 8 fill
SHAPES = load_workload(CHAPTER / "workload_cluster_multicast.py").timed_shapes
SPLIT, WHOLE = (SHAPES[name] for name in ("split lines", "whole lines"))


def waves(shape, sms):
    """Of tiles, so many of them at once."""
    assert shape["m"] % (8 * ROWS) == shape["n"] % COLUMNS == 0, "the last cluster would have less to do"
    return -(-(shape["m"] // ROWS * (shape["n"] // COLUMNS)) // sms)


def test_a_step_takes_the_port_and_shared_memory_as_long_and_the_products_less():
    port = (A + B) // model.L2_PORT
    assert port == (A + B) * 2 / model.SHARED  # written once, read once
    assert port > ROWS * COLUMNS * TILE_K // model.WGMMA


def test_both_shapes_are_as_many_waves_for_clusters_of_4_as_for_the_baseline():
    assert list(SHAPES.values()) == [SPLIT, WHOLE], "claims are proved at the first one"
    assert {**SPLIT, "k": DEPTH} == WHOLE
    assert WHOLE["clusterDim"] == 4
    assert waves(WHOLE, FILLED) == waves(WHOLE, model.SMS) == 4


def test_rows_split_lines_at_one_shape_and_not_at_the_other():
    assert 2 * SPLIT["k"] % LINE != 0
    assert 2 * WHOLE["k"] % LINE == 0


def test_the_ring_fits():
    stages = int(re.search(r"Pipeline<1, COLUMNS, (\d+)>", SMALL.read_text())[1])
    assert stages * (A + B) == 192 << 10
    assert stages * (A + B) + ROWS * CONSTANTS["PANEL"] * 2 + 2048 <= 227 << 10
