"""The script that runs a side of piece_graphs for a profiler runs as many streams as it is asked to."""

import os
import subprocess
import sys

import pytest

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
