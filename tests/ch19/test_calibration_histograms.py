"""ch19/calibration_histograms.py: what is counted of codes and scales, and that the script counts a trained model's."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
import torch

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

COUNTS = import_file(ROOT / "ch19/shared_code_counts.py")
MX = torch.tensor([[480.0, *[1.0] * 31], [448.0, *[0.0] * 31]])  # 480 saturates under a scale of 1, and not under one of 2


def test_four_bits_hold_their_own_values():
    x = torch.tensor([[0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]])
    found = COUNTS.counted("NVFP4", [x * 448, x * 448])
    assert found["codes"] == [2] * 16
    assert found["scales"][0x7E] == 2  # 448, since the tensor's factor is 1
    assert (found["beyond"], found["error"]) == (0, 0)


@pytest.mark.parametrize(("to", "beyond", "scales"), [("down", 1 / 64, {127: 2}), ("up", 0, {127: 1, 128: 1})])
def test_a_scale_that_is_rounded_down_saturates(to, beyond, scales):
    found = COUNTS.counted(f"MXFP8, scales rounded {to}", [MX])
    assert {byte: count for byte, count in enumerate(found["scales"]) if count} == scales
    assert found["beyond"] == beyond
    assert sum(found["codes"]) == 64
    assert (found["error"] > 0.01) == (to == "down")


def test_a_trained_model_uses_every_code_of_four_bits(tmp_path):
    command = [sys.executable, ROOT / "ch19/calibration_histograms.py", "--texts", "1", "--folder", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = json.loads((tmp_path / "codes.json").read_text())["counts"]
    assert set(counts) == set(COUNTS.FORMATS)
    for kind in ("weights", "activations"):
        down, up = (counts[f"MXFP8, scales rounded {to}"][kind] for to in ("down", "up"))
        assert all(counts["NVFP4"][kind]["codes"])
        assert up["beyond"] == 0 < down["beyond"]
        assert up["error"] < down["error"] < counts["NVFP4"][kind]["error"]
    assert len(ET.parse(tmp_path / "codes.svg").getroot().findall("{*}rect")) > 100
    assert "--texts: found 0" in subprocess.run([*command[:3], "0"], cwd=ROOT, capture_output=True, text=True, check=False).stderr
