"""The sides of a new pair compute what its workload says, on the CPU; those of the tree are in tests/pairs."""

import shutil
from pathlib import Path

import pytest

from common.python.project import PROJECT_ROOT
from tests.emulation.emulate import check_side

TEMPLATES = PROJECT_ROOT / "common" / "python" / "pairs" / "templates"

pytestmark = [pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"), pytest.mark.slow]


@pytest.mark.parametrize("side", ["baseline.cu", "optimized.cu"])
def test_the_templates_of_a_new_pair(side, tmp_path):
    shutil.copy(TEMPLATES / side, tmp_path / f"{Path(side).stem}_x.cu")
    assert check_side(TEMPLATES / "workload.py", tmp_path / f"{Path(side).stem}_x.cu") == []
