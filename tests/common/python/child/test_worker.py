"""On a CPU a side that needs FP8 is loaded where PyTorch multiplies without oneDNN, and any other where it has that."""

import pytest

from tests.support.commands import BASELINE, loaded_worker

TELLS = """
from pathlib import Path

import torch

Path(__file__).with_name("enabled.txt").write_text(str(torch.backends.mkldnn.enabled))
"""


@pytest.mark.parametrize(("needs", "enabled"), [("# needs: fp8\n", "False"), ("", "True")])
def test_fp8_is_multiplied_without_onednn(needs, enabled, server, tmp_path):
    child, _ = loaded_worker(server, tmp_path, needs + BASELINE + TELLS)
    with child:
        assert (tmp_path / "demo/enabled.txt").read_text() == enabled
