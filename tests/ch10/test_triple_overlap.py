"""Chapter 10's products run on the CPU, on stand-ins for TMA, barriers and tensor cores: right answers, and no wait that is not needed."""

import re

import pytest
import torch

from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from tests.ch10.emulated import (
    CHAPTER,
    SKELETON,
    assert_right_however_late,
    build,
    inputs_of,
    is_right,
    shapes_of,
    skip_without_compiler,
    waits,
)
from tests.support.cuda_sides import built

pytestmark = pytest.mark.slow

WORKLOAD = load_workload(CHAPTER / "workload_wgmma_triple_overlap.py")
SUMS = "shared_wgmma_sums.cuh"
WGMMA, TMEM = "optimized_wgmma_triple_overlap.cu", "optimized_tmem_triple_overlap.cu"
BASELINES = ["baseline_wgmma_triple_overlap.cu", "baseline_tmem_triple_overlap.cu"]
SIDES = [WGMMA, TMEM, *BASELINES]
ROUNDS = {"m": 300, "n": 648, "k": 392}  # 9 or 12 tiles on two multiprocessors: accumulators go round, and rings of 4 by tiles of 7 steps
SHAPES = shapes_of(WORKLOAD, ROUNDS)
SEEDS = range(8)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    skip_without_compiler()
    return {side: build(side, tmp_path_factory.mktemp("side")) for side in SIDES}


def right(c, values):
    return is_right(WORKLOAD, c, values)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("side", SIDES)
def test_a_side_is_right_however_late_its_copies_and_products_are(emulated, side, shape):
    assert_right_however_late(emulated[side], WORKLOAD, shape)


WAIT = r"\b(barrier_wait|warpgroup_sync|wait_until_stores_have_read|__syncthreads|wgmma_wait<\d>)\("
SKELETON_WAITS = waits(SKELETON, WAIT)
OWN_WAITS = {WGMMA: waits(SUMS, WAIT), **{side: waits(side, WAIT) for side in (TMEM, *BASELINES)}}
LEFT_TO_THE_OTHER = {WGMMA: r"!Mma::IN_REGISTERS", TMEM: r"(?<!!)Mma::IN_REGISTERS"}
# At the end load waits for commits; where threads arrive for their products instead, none of them ends before it has.
FOR_COMMITS = "barrier_wait(&shared.consumed[at.stage], at.parity ^ 1);"
WAITS = [
    (side, *wait)
    for side in SIDES
    for wait in (*(() if side in BASELINES else SKELETON_WAITS), *OWN_WAITS[side])
    if not re.search(LEFT_TO_THE_OTHER.get(side, "$^"), wait[1]) and (side, wait[1]) != (WGMMA, FOR_COMMITS)
]


def test_all_waits_were_found():
    assert len(SKELETON_WAITS) == 11
    assert [len([wait for wait in WAITS if wait[0] == side]) for side in SIDES] == [10, 11, 3, 4]


@pytest.mark.parametrize(("side", "place", "text"), WAITS)
def test_no_wait_can_be_left_out(emulated, side, place, text):
    values = inputs_of(WORKLOAD, ROUNDS)
    for laziness in ("late", "by chance", "at once"):
        for seed in SEEDS:
            try:
                if not right(emulated[side].run(values, ROUNDS, seed=seed, laziness=laziness, skipped=place), values):
                    return
            except RuntimeError:
                return
    pytest.fail(f"{place}: right without `{text}`, in every order that was tried")


def test_rows_that_no_tensor_map_takes_are_refused(emulated):
    shape = {"m": 8, "n": 12, "k": 8}
    with pytest.raises(RuntimeError):
        emulated[WGMMA].run(inputs_of(WORKLOAD, shape), shape)


def test_both_workloads_are_the_same_work():
    other = load_workload(CHAPTER / "workload_tmem_triple_overlap.py")
    assert other.time_at == WORKLOAD.time_at
    assert other.tolerance("optimized") == WORKLOAD.tolerance("optimized")
    assert read_directives(CHAPTER / "workload_tmem_triple_overlap.py").instead == "ch10:wgmma_triple_overlap"


def test_the_last_check_goes_round_on_every_gpu_that_can_run_it():
    shape, multiprocessors = WORKLOAD.check_at[-1], 148
    tiles = -(-shape["m"] // 128) * -(-shape["n"] // 256)
    assert tiles > 2 * multiprocessors
    assert all(shape[name] * 2 % 16 == 0 for shape in (*WORKLOAD.check_at, *WORKLOAD.timed_shapes.values()) for name in "nk")


def test_the_registers_of_the_roles_fit_what_the_block_began_with():
    text = (CHAPTER / SUMS).read_text()
    load, multiply = (int(number) for number in re.findall(r"_registers<(\d+)>", text))
    began = 65536 // 384 // 8 * 8
    assert load + 2 * multiply <= 3 * began == 3 * 168


@pytest.mark.parametrize(("side", "architecture"), [(WGMMA, "90a"), (TMEM, "100a"), ("baseline_wgmma_triple_overlap.cu", "90a")])
def test_ptxas_spills_nothing_and_does_not_serialize(side, architecture):
    log = built(CHAPTER / side, architecture).log
    assert "0 bytes spill stores, 0 bytes spill loads" in log
    assert "warning" not in log.lower()
    assert "serialized" not in log


def test_the_answer_of_a_product_is_rounded_to_bf16(emulated):
    values = inputs_of(WORKLOAD, WORKLOAD.check_at[2])
    exact = values["a"].float() @ values["b"].float().T
    found = emulated[TMEM].run(values, WORKLOAD.check_at[2])
    assert (found != exact.to(torch.bfloat16)).float().mean() < 0.01
