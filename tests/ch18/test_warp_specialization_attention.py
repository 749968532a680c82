"""ch18:warp_specialization_attention_cuda on stand-ins for Hopper: right in any order of events, and no wait is there for nothing."""

import re

import pytest
import torch

from common.python.child.sides.loader import load_workload
from tests.ch10.emulated import LAZINESS, build, inputs_of, skip_without_compiler
from tests.support.cuda_sides import built, listing_of
from tests.support.teeth import ROOT, accepts

pytestmark = pytest.mark.slow

CHAPTER = ROOT / "ch18"
SIDE = "optimized_warp_specialization_attention_cuda.cu"
WORKLOAD = load_workload(CHAPTER / "workload_warp_specialization_attention.py")
ROUNDS = {"heads": 2, "queries": 257, "keys": 1000}  # 6 tiles of queries on two multiprocessors, 6 tiles of keys in rings of 2
WAITING = re.compile(r"\b(barrier_wait|__syncthreads|await_turn|wgmma_wait<\d>)\(")
LINES = (CHAPTER / SIDE).read_text().splitlines()
WAITS = [(number, line.strip()) for number, line in enumerate(LINES, 1) if WAITING.search(line)]
# Turns change when products start, and no answer.
FOR_SPEED = "await_turn(own);"


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    skip_without_compiler()
    return build(SIDE, tmp_path_factory.mktemp("side"), CHAPTER)


def is_right(side, shape, **how):
    values = inputs_of(WORKLOAD, shape)
    y = torch.full((shape["heads"], shape["queries"], 128), torch.nan, dtype=torch.bfloat16)
    side.launch(values["q"], values["k"], values["v"], y, *shape.values(), **how)
    return accepts(WORKLOAD.tolerance("optimized"), [y], [WORKLOAD.reference(*(values[name].double() for name in "qkv"))])


@pytest.mark.parametrize("shape", WORKLOAD.check_at, ids=str)
@pytest.mark.parametrize("multiprocessors", [1, 4])
def test_right_however_late_its_copies_and_products_are(emulated, shape, multiprocessors):
    for laziness in LAZINESS:
        for seed in (1, 2):
            assert is_right(emulated, dict(shape), seed=seed, laziness=laziness, multiprocessors=multiprocessors), (laziness, seed)


def test_all_waits_were_found():
    assert len(WAITS) == 13


@pytest.mark.parametrize(("number", "text"), [wait for wait in WAITS if wait[1] != FOR_SPEED])
def test_no_wait_can_be_left_out(emulated, number, text):
    for laziness in ("late", "by chance", "at once"):
        for seed in range(8):
            try:
                if not is_right(emulated, ROUNDS, seed=seed, laziness=laziness, skipped=f"{SIDE}:{number}"):
                    return
            except RuntimeError:
                return
    pytest.fail(f"line {number}: right without `{text}`, in every order that was tried")


def test_who_starts_products_without_a_turn_is_late_for_the_others_and_right(emulated):
    (number,) = [number for number, text in WAITS if text == FOR_SPEED]
    assert is_right(emulated, ROUNDS, skipped=f"{SIDE}:{number}")


def test_ptxas_spills_nothing_and_does_not_serialize():
    log = built(CHAPTER / SIDE).log
    assert "0 bytes spill stores, 0 bytes spill loads" in log
    assert "serialized" not in log


def test_a_tiles_exponentials_lie_between_the_start_of_the_products_of_values_and_the_wait_for_them():
    names = ("HGMMA", r"WARPGROUP\.DEPBAR", r"MUFU\.EX2", r"F2FP", r"BAR\.SYNC", r"BAR\.ARV")
    order = re.findall(rf"\b(?:{'|'.join(names)})\b", listing_of(CHAPTER / SIDE))
    loop = order[order.index("BAR.ARV", order.index("HGMMA")) :]  # after products of scores and of values were started
    assert loop[1] == "WARPGROUP.DEPBAR"
    until = loop.index("WARPGROUP.DEPBAR", 2)
    assert set(loop[2:until]) == {"MUFU.EX2"}
    assert loop[2:until].count("MUFU.EX2") == 192 // 2 + 2
    assert loop[until + 1] == "F2FP"
