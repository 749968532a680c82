"""Run one rung of the lab at a size of your choice.

    ./setup.sh python labs/blackwell_matmul/run_blackwell_matmul.py --variant cluster --size 4096

Exit 2 at once where the GPU cannot launch what the variant needs; otherwise the exit status of `benchmark_cli run`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
# Of each variant the compute capabilities that run it, lowest and first above, and what they have.
NEEDS = {
    "best": ((9, 0), (10, 0), "wgmma and clusters"),
    "pseudo": ((8, 0), (99, 0), "asynchronous copies"),
    "tma": ((9, 0), (99, 0), "the TMA"),
    "pipeline": ((9, 0), (10, 0), "wgmma"),
    "cluster": ((9, 0), (10, 0), "wgmma and clusters"),
    "tcgen05": ((10, 0), (11, 0), "tcgen05"),
}


def unmet(variant: str, capability: tuple[int, int] | None) -> str | None:
    """Why a GPU of `capability`, None for no GPU, cannot run `variant`; None where it can."""
    lowest, above, what = NEEDS[variant]
    if capability is None:
        return f"--variant {variant}: found no GPU; expected one with {what}"
    if not lowest <= capability < above:
        return f"--variant {variant}: found compute capability {capability[0]}.{capability[1]}; expected {what}"
    return None


def main() -> int:
    """Check the GPU, then run the pair."""
    parser = argparse.ArgumentParser(description="One rung of labs/blackwell_matmul, against its baseline.")
    parser.add_argument("--variant", choices=NEEDS, default="best")
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of all matrices, a multiple of 8")
    options = parser.parse_args()
    if options.size < 8 or options.size % 8:
        parser.error(f"--size: found {options.size}; expected a positive multiple of 8, for rows of whole 16 bytes")
    if reason := unmet(options.variant, torch.cuda.get_device_capability() if torch.cuda.is_available() else None):
        print(f"run_blackwell_matmul: {reason}", file=sys.stderr)
        return 2
    name = "blackwell_matmul" if options.variant == "best" else f"blackwell_matmul_{options.variant}"
    shape = f"m={options.size} n={options.size} k={options.size}"
    command = [sys.executable, "tools/cli/benchmark_cli.py", "run", "--targets", f"labs/blackwell_matmul:{name}", "--kwargs", shape]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
