"""Run the lab's matrix product at a size of your choice.

    ./setup.sh python labs/fullstack_cluster/run_lab_fullstack_cluster.py --size 4096 --iters 5 --baseline-iters 1

Exit 2 at once where the GPU has no wgmma; otherwise the exit status of `benchmark_cli run`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]


def unmet(capability: tuple[int, int] | None) -> str | None:
    """Why a GPU of `capability`, None for no GPU, cannot run the kernels; None where it can."""
    if capability is None:
        return "found no GPU; expected one with wgmma and clusters"
    if capability[0] != 9:
        return f"found compute capability {capability[0]}.{capability[1]}; expected 9.0, for wgmma and clusters"
    return None


def command_of(size: int, iters: int, baseline_iters: int) -> list[str]:
    """The harness's command. Its sides take turns, so both get the larger count."""
    shape = f"m={size} n={size} k={size}"
    calls = str(max(iters, baseline_iters))
    target = ["--targets", "labs/fullstack_cluster:cluster_gemm", "--kwargs", shape, "--iterations", calls]
    return [sys.executable, "tools/cli/benchmark_cli.py", "run", *target]


def main() -> int:
    """Check the GPU, then run the pair."""
    parser = argparse.ArgumentParser(description="labs/fullstack_cluster:cluster_gemm at a size of your choice.")
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of all matrices, a multiple of 8")
    parser.add_argument("--iters", type=int, default=5, help="timed calls of the optimized side in each process")
    parser.add_argument("--baseline-iters", type=int, default=1, help="the same of the baseline; the larger of both counts for both")
    options = parser.parse_args()
    if options.size < 8 or options.size % 8:
        parser.error(f"--size: found {options.size}; expected a positive multiple of 8, for rows of whole 16 bytes")
    if min(options.iters, options.baseline_iters) < 1:
        parser.error("--iters and --baseline-iters: expected at least 1")
    if reason := unmet(torch.cuda.get_device_capability() if torch.cuda.is_available() else None):
        print(f"run_lab_fullstack_cluster: {reason}", file=sys.stderr)
        return 2
    return subprocess.run(command_of(options.size, options.iters, options.baseline_iters), cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
