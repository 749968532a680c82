"""Runs a side of piece_graphs by itself, for a profiler: 20 streams, or with PIECEGRAPH_PROFILE_ONCE=1 one, bracketed for nsys.

PIECEGRAPH_PROFILE_ONCE=1 nsys profile -c cudaProfilerApi -o artifacts/piece_graphs ./setup.sh python ch16/piece_graphs.py optimized

Without a GPU it runs a check shape, and no graph is captured.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import torch

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side, load_workload

CHAPTER = Path(__file__).parent
SIDES = ("baseline", "optimized")
STREAMS = 20


def run(side, streams):
    """Answer `streams` streams after an untimed one, which loads what is loaded once; how many contexts one has."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    workload = load_workload(CHAPTER / "workload_piece_graphs.py")
    shape = next(iter(workload.timed_shapes.values())) if device.type == "cuda" else workload.check_at[-1]
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs(workload, shape, 0, device, Path(folder))
        step = load_side(CHAPTER / f"{side}_piece_graphs.py", workload, None).prepare(inputs.values, shape)
        step()
        with torch.cuda.profiler.profile() if device.type == "cuda" else contextlib.nullcontext():
            for _ in range(streams):
                step()
    return shape["steps"]


def main(side):
    """Say how many streams ran, and over how many contexts each."""
    streams = 1 if os.environ.get("PIECEGRAPH_PROFILE_ONCE") == "1" else STREAMS
    print(f"{side}: {streams} streams of {run(side, streams)} contexts")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SIDES:
        print(f"ch16/piece_graphs.py: found {sys.argv[1:]}; expected one of {', '.join(SIDES)}", file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1])
