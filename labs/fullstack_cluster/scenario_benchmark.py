"""Run the job's stages alone, as chapter 20's pairs, and then the job.

    ./setup.sh python labs/fullstack_cluster/scenario_benchmark.py
    ./setup.sh python labs/fullstack_cluster/scenario_benchmark.py --stage training

The exit status is that of `benchmark_cli run`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from shared_chapter20 import STAGES

ROOT = Path(__file__).parents[2]


def targets_of(stage: str | None) -> list[str]:
    """The stage's pair; without a stage those of all, and the job."""
    if stage is not None:
        return [f"ch20:{STAGES[stage]}"]
    return [*(f"ch20:{pair}" for pair in STAGES.values()), "labs/fullstack_cluster:09_end_to_end"]


def main() -> int:
    """Run what is asked for in one run."""
    parser = argparse.ArgumentParser(description="The stages of labs/fullstack_cluster:09_end_to_end, and the job.")
    parser.add_argument("--stage", choices=STAGES, help="one stage alone")
    targets = targets_of(parser.parse_args().stage)
    command = [sys.executable, "tools/cli/benchmark_cli.py", "run", "--targets", *targets]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
