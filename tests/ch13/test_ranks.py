"""Pairs of several ranks are right in 2 and in 4 processes; how a layout of ranks is read, and blocks of e4m3 values."""

import os
import re
import subprocess
import sys

import pytest

from common.python.child.sides.loader import import_file, load_workload
from common.python.project import PROJECT_ROOT
from tests.pairs.harness import Harness
from tests.pairs.tree import pairs_of, sides_of

CHAPTER = PROJECT_ROOT / "ch13"
layout = import_file(CHAPTER / "shared_mesh_layout.py")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("dp4", {"dp": 4, "pp": 1, "tp": 1, "sp": 1, "ep": 1}),
        ("dp2_tp2", {"dp": 2, "pp": 1, "tp": 2, "sp": 1, "ep": 1}),
        ("tp2_pp1_dp2_ep2_sp2", {"dp": 2, "pp": 1, "tp": 2, "sp": 2, "ep": 2}),  # shared axes are no further factors
    ],
)
def test_layout(text, sizes):
    assert layout.parse_layout(text, 4) == sizes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "has an entry ''; expected one of dp, pp, tp, sp, ep"),
        ("dp2_cp2", "has an entry 'cp2'"),
        ("dp2_tp", "has an entry 'tp'"),
        ("dp2_dp2", "names dp twice"),
        ("dp4_tp0", "gives tp no ranks"),
        ("dp2", "has 2 ranks, the product of dp, pp and tp; expected 4"),
        ("tp4_pp2_dp2", "has 16 ranks"),
        ("dp4_sp2", "has sp2 and tp1"),
        ("tp2_dp2_ep4", "has ep4 and dp2"),
    ],
)
def test_layout_that_cannot_be(text, found):
    with pytest.raises(ValueError, match=re.escape(found)) as raised:
        layout.parse_layout(text, 4)
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize(("text", "found"), [("tp2_pp2", "no stages"), ("dp4_ep2", "no experts")])
def test_layout_beyond_a_dense_model(text, found):
    assert layout.dense_layout("dp4", 4)["dp"] == 4
    with pytest.raises(ValueError, match=found):
        layout.dense_layout(text, 4)


BLOCKS = """
import torch
from shared_fp8_blocks import BLOCK, added, quantized

small = torch.arange(4 * BLOCK).remainder(15).sub(7).view(4, BLOCK).mul(2.0**-14).bfloat16()
assert (small.to(torch.float8_e4m3fn).float() == 0).all(), "plain e4m3 should lose them"
assert torch.equal(added(*quantized(small)).view(4, BLOCK), small)
assert torch.equal(added(*quantized(small), terms=4).float(), small.float().sum(0))
same = torch.zeros(2, BLOCK, dtype=torch.bfloat16)
same[1] = 448 * 2.0**90
assert torch.equal(added(*quantized(same)).view(2, BLOCK), same)
"""


def test_blocks_of_small_large_and_no_values():
    """Values that need no rounding to e4m3: Triton's interpreter loses the carry when it rounds to FP8."""
    here = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(CHAPTER)}
    run = subprocess.run([sys.executable, "-c", BLOCKS], env=here, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr


COUNTS = {"fsdp": (2, 4), "fsdp2_fp8": (2, 4), "tp_fsdp": (4,), "dtensor": (4,)}  # two axes of two are four ranks
SIDES = [side for side in sides_of(pair for pair in pairs_of() if pair.directory == "ch13") if side.pair.name in COUNTS]
IN_PROCESSES = [pytest.param(side, count, id=f"{side.id}-{count}") for side in SIDES for count in COUNTS[side.pair.name]]


@pytest.fixture(scope="module")
def harness():
    with Harness() as started:
        yield started


@pytest.mark.parametrize(("side", "ranks"), IN_PROCESSES)
def test_a_side_is_right_in_gloo_processes(side, ranks, harness):
    """On a CPU e4m3 is no obstacle: PyTorch converts it, and Triton's interpreter quantizes."""
    harness.check(side, list(load_workload(side.pair.workload).check_at), ranks)


def test_no_workload_allows_more():
    allowed = {pair.name: load_workload(pair.workload).ranks for pair in pairs_of() if pair.directory == "ch13"}
    assert {name: tuple(each for each in ranks if each in (2, 4)) for name, ranks in allowed.items() if ranks} == COUNTS
