"""ch07:tma_copy: tiles, boxes and maps keep to what the TMA wants, and as many tiles fit an SM as the expectation counts."""

import pytest

from common.python.loader import load_workload
from tests.ch07.sides import CHAPTER, constants, text_of

WORKLOAD = load_workload(CHAPTER / "workload_tma_copy.py")
TMA = "optimized_tma_copy.cu"
SHARED_AN_SM, CUDAS_OWN, BARRIER = 228 << 10, 1 << 10, 128


def test_a_box_is_within_256_and_its_rows_are_whole_16_bytes():
    wide, high = constants(TMA)["WIDE"], constants(TMA)["HIGH"]
    assert max(wide, high) <= 256
    assert 4 * wide % 16 == 0


@pytest.mark.parametrize("shape", [WORKLOAD.time_at, *WORKLOAD.check_at], ids=str)
def test_the_stride_of_every_matrix_is_whole_16_bytes(shape):
    assert 4 * shape["cols"] % 16 == 0


def test_thirteen_tiles_fit_an_sm():
    tile = 4 * constants(TMA)["WIDE"] * constants(TMA)["HIGH"]
    assert tile == 16 << 10
    assert SHARED_AN_SM // (tile + BARRIER + CUDAS_OWN) == 13


def test_the_bytes_that_the_barrier_awaits_are_the_tile():
    assert "TILE_BYTES = WIDE * HIGH * sizeof(float)" in text_of(TMA)
    assert "float tile[HIGH * WIDE]" in text_of(TMA)
