"""Which ceiling of the machine limits a side of the lab, and how near it came, from a run that somebody made.

    python labs/ultimate_moe_inference/scaling_study/roofline_analyzer.py artifacts/<run> --benchmark optimized_ultimate_inference

Without a folder it reads the run of run_full_analysis.py. Work is what the workload declares; ceilings are those that
`benchmark_cli peak` measured on that machine.
"""

import argparse
import sys
from pathlib import Path

from labs.ultimate_moe_inference.scaling_study.compare_optimizations import row_of
from labs.ultimate_moe_inference.scaling_study.study import ROOT, Unmeasured, table, timing_of


def side_of(benchmark):
    """The ladder's side that a file's name stands for: "optimized" for optimized_ultimate_inference, "layer4_graphs" for that layer's."""
    name = benchmark.removesuffix(".py").removesuffix("_ultimate_inference")
    return name.removeprefix("optimized_")


def report(row, benchmark=""):
    """The table of a row, of all sides or of one. Raises Unmeasured for a side that it does not have, or without ceilings."""
    timing = timing_of(row)
    shares = timing["shares"]
    if not shares:
        raise Unmeasured("found no ceilings of this machine in the run; expected `benchmark_cli peak` before it")
    wanted = [side_of(benchmark)] if benchmark else list(shares)
    if wanted[0] not in shares:
        raise Unmeasured(f"--benchmark {benchmark}: found no such side; expected one of {', '.join(shares)}")
    cells = []
    for side in wanted:
        limit, time = shares[side], timing["time_ns"][side]["estimate"]
        cells.append([side, f"{time / 1e3:.1f}", limit["key"], f"{limit['ceiling_ns'] / 1e3:.1f}", f"{limit['share']:.0%}"])
    work = ", ".join(f"{key} {amount:.4g}" for key, amount in timing["work"].items())
    head = ["side", "µs per step", "limited by", "µs at that ceiling", "share"]
    return f"Work of a step, in flops or bytes: {work}\n\n{table(head, cells)}"


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = ROOT / "artifacts/ultimate_moe_inference"
    parser.add_argument("folder", type=Path, nargs="?", default=usual, help="what a run left (default: run_full_analysis.py's)")
    parser.add_argument("--benchmark", default="", help="one side, by its file: optimized_ultimate_inference (default: all)")
    options = parser.parse_args(arguments)
    try:
        print(report(row_of(options.folder), options.benchmark))
    except Unmeasured as reason:
        sys.exit(f"roofline_analyzer.py: {reason}")


if __name__ == "__main__":
    main()
