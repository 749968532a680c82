"""Run the lab's ladder and write REPORT.md: layers, ceilings, and where the profiles are.

    ./setup.sh python labs/ultimate_moe_inference/run_full_analysis.py [--quick] [--profile all]

--quick times two calls a side instead of measuring until it is decided. A second call with the same --folder goes on.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from common.python.errors import ExitCode
from labs.ultimate_moe_inference.scaling_study import compare_optimizations, roofline_analyzer
from labs.ultimate_moe_inference.scaling_study.study import ROOT, TARGET, Unmeasured, command_of

PROFILES = {"none": [], "minimal": ["minimal"], "roofline": ["roofline"], "all": ["deep_dive"]}


def options_of(arguments):
    """The command line's flags."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two timed calls a side: a first look, no decided row")
    parser.add_argument("--profile", choices=PROFILES, default="none", help="nsys and ncu beside the times; all is deep_dive")
    parser.add_argument("--folder", type=Path, default=ROOT / "artifacts/ultimate_moe_inference", help="the run and REPORT.md")
    return parser.parse_args(arguments)


def flags_of(options):
    """What the run is told beside its target."""
    quick = ["--iterations", "2", "--warmup", "1"] if options.quick else []
    return [*quick, *(flag for preset in PROFILES[options.profile] for flag in ("--profile", preset))]


def report(row, options):
    """REPORT.md of a row."""
    sort = "quick, two calls a side" if options.quick else "measured until decided"
    parts = [f"# {TARGET}\n", f"{row['idea']} Times: {sort}.\n", "## Layers\n", compare_optimizations.report(row), "## Ceilings\n"]
    try:
        parts.append(roofline_analyzer.report(row))
    except Unmeasured as reason:
        parts.append(f"{reason}\n")
    parts.append("## More\n\n[report.html](report.html) has intervals, proofs, kernels and, if they were asked for, profiles.\n")
    return "\n".join(parts)


def main(arguments=None):
    """Run, then report."""
    options = options_of(arguments)
    done = subprocess.run(command_of(options.folder, {}, flags_of(options)), cwd=ROOT, check=False)
    if done.returncode == ExitCode.USAGE:  # such as other flags than those that made the rows in the folder
        sys.exit(f"run_full_analysis.py: --folder {options.folder}: the run was refused, as said above; nothing was reported")
    try:
        text = report(compare_optimizations.row_of(options.folder), options)
    except Unmeasured as reason:
        sys.exit(f"run_full_analysis.py: {reason}")
    (options.folder / "REPORT.md").write_text(text)
    print(options.folder / "REPORT.md")


if __name__ == "__main__":
    main()
