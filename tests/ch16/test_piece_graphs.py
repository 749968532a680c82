"""piece_graphs captures in set-up alone, and its script runs as many streams for a profiler as it is asked to."""

import os
import subprocess
import sys

import pytest
import torch

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import import_file, load_side, load_workload
from tests.support.chapters import modules_of
from tests.support.teeth import ROOT


def said(*arguments, **environment):
    """What the script prints. Raises CalledProcessError if it fails."""
    command = [sys.executable, ROOT / "ch16" / "piece_graphs.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, **environment}).stdout


@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_a_profile_of_one_stream_can_be_asked_for(side):
    assert said(side, PIECEGRAPH_PROFILE_ONCE="1").startswith(f"{side}: 1 streams of ")
    assert said(side, PIECEGRAPH_PROFILE_ONCE="0").startswith(f"{side}: 20 streams of ")


def test_a_side_that_is_not_there_is_an_error():
    with pytest.raises(subprocess.CalledProcessError) as failed:
        said("neither")
    assert "found ['neither']; expected one of baseline, optimized" in failed.value.stderr


@pytest.mark.parametrize(("side", "captures"), [("baseline", 2), ("optimized", 3)])  # buckets of 300 tokens; two layers' pieces
def test_graphs_are_captured_in_set_up_and_replayed_in_a_step(side, captures, monkeypatch, tmp_path):
    with modules_of(ROOT / "ch16", monkeypatch):
        calls = []
        regions = import_file(ROOT / "ch16/shared_regions.py")
        monkeypatch.setitem(sys.modules, "shared_regions", regions)
        monkeypatch.setattr(regions, "captured", lambda call, pool: calls.append(call) or (lambda: calls.append("replay") or call()))
        workload = load_workload(ROOT / "ch16/workload_piece_graphs.py")
        shape = workload.check_at[1]
        inputs = Inputs(workload, shape, 0, torch.device("cpu"), tmp_path)
        step = load_side(ROOT / f"ch16/{side}_piece_graphs.py", workload, None).prepare(inputs.values, shape)
        assert len(calls) == captures
        step()
        assert calls[captures:] == ["replay"] * shape["steps"] * (1 if side == "baseline" else captures)
