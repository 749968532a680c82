"""The ladder of chapter 10's product: its order, what a step of it is expected over, and what a step takes of shared memory."""

from itertools import pairwise

from common.python.pairs.discovery import discover, with_rungs
from common.python.pairs.predictions import predictions_of
from tests.ch10 import model
from tests.ch10.emulated import CHAPTER
from tests.support.cuda_sides import constants_of
from tests.support.teeth import ROOT

WORKLOAD = CHAPTER / "workload_matmul.py"
HEADERS = (ROOT / "common/cuda/operands.cuh", ROOT / "common/cuda/warpgroup.cuh", CHAPTER / "shared_tile.cuh")
CONSTANTS = constants_of(*HEADERS, CHAPTER / "shared_matmul_pipeline.cuh", CHAPTER / "optimized_matmul.cu")
TILE_M, TILE_N, TILE_K = (CONSTANTS[name] for name in ("TILE_M", "TILE_N", "TILE_K"))
STEP = TILE_M * TILE_N * TILE_K / model.WGMMA  # cycles


def sides():
    (pair,) = [pair for pair in discover(ROOT).pairs if pair.target == "ch10:matmul"]
    return with_rungs(pair, ROOT).sides


def test_the_ladder_climbs_as_its_readers_are_told():
    assert list(sides())[1:-1] == [
        *("shared_tile", "register_tile"),
        *("baseline_double_buffered_pipeline", "double_buffered_pipeline", "pipeline_3stage", "tma_2d_pipeline"),
        *("wgmma", "loader", "walk", "warp_specialized_pipeline", "wgmma_triple_overlap"),
        *("clustered", "persistent_matmul", "optimized"),
    ]


def test_every_step_is_predicted_over_the_step_before():
    before = {step: last for last, step in pairwise(sides()) if step != "library"}
    predictions, _ = predictions_of(WORKLOAD, sides())
    of_steps = {(line.side, line.over) for line in predictions if line.over}
    assert of_steps == set(before.items())


def test_a_step_takes_all_that_shared_memory_gives():
    stage = (TILE_M + TILE_N) * TILE_K * 2
    assert CONSTANTS["STAGES"] * stage + 2 * 64 * 64 * 2 <= 227 << 10
    assert STEP == 1024
    read = CONSTANTS["CONSUMERS"] * TILE_K // 16 * (64 + TILE_N) * 16 * 2
    assert (read + stage) / STEP == 128
