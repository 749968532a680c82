"""Gluon's sides of ch18:warp_specialization_attention on stand-ins: Triton's interpreter knows no Gluon."""

import importlib
import math
import sys

import pytest
import torch

from common.python.child.sides.loader import load_workload
from tests.ch10.emulated import inputs_of
from tests.ch18.gluon_stand_in import Map, Pointer, run
from tests.support.teeth import ROOT, accepts

pytest.importorskip("triton")

CHAPTER = ROOT / "ch18"
WORKLOAD = load_workload(CHAPTER / "workload_warp_specialization_attention.py")
KERNELS = {"optimized_warp_specialization_attention": "specialized_attend", "optimized_warp_specialization_attention_pingpong": "attend"}
QUERIES = 128  # of a block


def attend(name, shape, lazy, **changed):
    """Whether the side's answer is right, how many tiles were copied, and how many keys a tile has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(CHAPTER), *sys.path])
        side = importlib.import_module(name)
    values = inputs_of(WORKLOAD, shape)
    y = torch.full((shape["heads"], shape["queries"], 128), torch.nan, dtype=torch.bfloat16)
    arguments = {f"from_{x}": Map(values[x].flatten(0, 1), side.ROWS if x == "q" else side.COLS) for x in "qkv"}
    arguments |= {"y": Pointer(y), "queries": shape["queries"], "keys": shape["keys"], "unit": math.log2(math.e) / math.sqrt(128)}
    arguments |= {"STAGES": side.STAGES, "CAUSAL": bool(shape["causal"])}
    arguments |= {"TURNS": True} if "pingpong" in name else {}
    grid = shape["heads"], math.ceil(shape["queries"] / QUERIES)
    copies = run(side, KERNELS[name], grid, arguments | changed, lazy)
    expected = WORKLOAD.reference(**{x: values[x].double() for x in "qkv"}, causal=shape["causal"])
    return accepts(WORKLOAD.tolerance("optimized"), [y], [expected]), copies, side.COLS


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("shape", WORKLOAD.check_at, ids=str)
@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "late"])
def test_right_and_no_tile_above_the_diagonal_is_loaded(name, shape, lazy):
    right, copies, cols = attend(name, dict(shape), lazy)
    assert right
    lasts = [min(start + QUERIES, shape["keys"]) if shape["causal"] else shape["keys"] for start in range(0, shape["queries"], QUERIES)]
    of_queries = 2 if "pingpong" in name else 1
    assert copies == shape["heads"] * sum(of_queries + 2 * math.ceil(last / cols) for last in lasts)


@pytest.mark.parametrize("shape", WORKLOAD.check_at, ids=str)
@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "late"])
def test_right_without_turns(shape, lazy):
    assert attend("optimized_warp_specialization_attention_pingpong", dict(shape), lazy, TURNS=False)[0]


@pytest.mark.parametrize("name", KERNELS)
def test_a_mask_that_is_left_out_is_noticed(name):
    assert not attend(name, {"heads": 1, "queries": 300, "keys": 300, "causal": 1}, lazy=False, CAUSAL=False)[0]
