"""Every plain CUDA side of the tree computes what its workload says, on the CPU."""

import shutil
from pathlib import Path

import pytest

from common.python.discovery import discover
from common.python.project import PROJECT_ROOT
from tests.emulation.emulate import check_side
from tests.emulation.translate import NotEmulated

SIDES = sorted({(side, pair.workload) for pair in discover(PROJECT_ROOT).pairs for side in pair.sides.values() if side.suffix == ".cu"})
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
