"""Every plain CUDA side of the tree computes what its workload says, on the CPU."""

import shutil
from pathlib import Path

import pytest

from common.python.pairs.discovery import discover, with_rungs
from common.python.project import PROJECT_ROOT
from tests.emulation.emulate import check_side
from tests.emulation.translate import NotEmulated

PAIRS = discover(PROJECT_ROOT).pairs
OF_PAIRS = {(side, pair.workload) for pair in PAIRS for side in pair.sides.values() if side.suffix == ".cu"}
STEPS = {(side, pair.workload) for pair in PAIRS for side in with_rungs(pair, PROJECT_ROOT).sides.values() if side.suffix == ".cu"}
SIDES = sorted(OF_PAIRS | {step for step in STEPS if step[0] not in {side for side, _ in OF_PAIRS}})
TEMPLATES = PROJECT_ROOT / "common" / "python" / "templates" / "pair"

pytestmark = [pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"), pytest.mark.slow]


@pytest.mark.parametrize(("side", "workload"), SIDES, ids=[str(side.relative_to(PROJECT_ROOT)) for side, _ in SIDES])
def test_every_plain_cuda_side(side, workload):
    try:
        notes = check_side(workload, side)
    except NotEmulated as reason:
        pytest.skip(str(reason))
    if notes:
        pytest.skip("; ".join(notes))


@pytest.mark.parametrize("side", ["baseline.cu", "optimized.cu"])
def test_the_templates_of_a_new_pair(side, tmp_path):
    shutil.copy(TEMPLATES / side, tmp_path / f"{Path(side).stem}_x.cu")
    assert check_side(TEMPLATES / "workload.py", tmp_path / f"{Path(side).stem}_x.cu") == []
