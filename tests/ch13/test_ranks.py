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
stages = import_file(CHAPTER / "shared_stage_layout.py")


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


@pytest.mark.parametrize(
    ("text", "ranks", "whole"), [("pp2", 2, "pp2_dp1"), ("tp2_pp2", 8, "tp2_pp2_dp2"), ("ep4", 4, "ep4_dp4"), ("dp4", 4, "dp4")]
)
def test_dp_takes_the_ranks_that_are_left(text, ranks, whole):
    assert stages.filled(text, ranks) == whole


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pp3", "has 3 ranks, the product of dp, pp and tp; expected 4"),
        ("pp4", "has pp4; expected a divisor of the model's 6 layers"),
        ("pp2_ep2", "no experts to share out"),
        ("tp", "has an entry 'tp'"),
    ],
)
def test_layout_that_has_no_equal_stages(text, found):
    assert stages.stage_layout("pp2_tp2_sp2", 4, 6) == {"dp": 1, "pp": 2, "tp": 2, "sp": 2, "ep": 1}
    with pytest.raises(ValueError, match=re.escape(found)):
        stages.stage_layout(text, 4, 6)


@pytest.mark.parametrize(
    ("text", "experts", "found"),
    [("pp2_ep2", 8, "has pp2; expected pp1"), ("ep8", 8, "has ep8 and dp4"), ("ep2", 6, "found 6 experts and 4 ranks")],
)
def test_layout_that_cannot_share_out_experts(text, experts, found):
    assert stages.expert_layout("ep2", 4, 8) == {"dp": 4, "pp": 1, "tp": 1, "sp": 1, "ep": 2}
    with pytest.raises(ValueError, match=re.escape(found)):
        stages.expert_layout(text, 4, experts)


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


COUNTS = {
    "fsdp": (2, 4),
    "fsdp2_fp8": (2, 4),
    "tp_fsdp": (4,),  # two axes of two are four ranks
    "dtensor": (4,),
    "dtensor_pipeline": (2, 4),
    "dtensor_experts": (2, 4),
}
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


OTHER_LAYOUTS = [
    ("dtensor_pipeline", {"layout": "pp2_tp2_sp2"}),
    ("dtensor_pipeline", {"layout": "pp4", "layers": 4}),
    ("dtensor_experts", {"layout": "ep4"}),
]


@pytest.mark.slow  # half a minute each on two cores
@pytest.mark.parametrize(("name", "other"), OTHER_LAYOUTS)
def test_an_optimized_side_is_right_in_other_layouts_of_four(name, other, harness):
    (side,) = (side for side in SIDES if side.pair.name == name and side.file.stem.startswith("optimized"))
    harness.check(side, [dict(load_workload(side.pair.workload).check_at[0]) | other], 4)


def test_no_workload_allows_more():
    allowed = {pair.name: load_workload(pair.workload).ranks for pair in pairs_of() if pair.directory == "ch13"}
    assert {name: tuple(each for each in ranks if each in (2, 4)) for name, ranks in allowed.items() if ranks} == COUNTS
