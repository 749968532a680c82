"""What each layer of the lab gained in a run: time, gain over the layer before, gain over the baseline.

./setup.sh python labs/ultimate_moe_inference/scaling_study/compare_optimizations.py artifacts/<run>
"""

import argparse
import sys
from pathlib import Path

from labs.ultimate_moe_inference.scaling_study.study import TARGET, Unmeasured, row_in, table, times_of


def report(row):
    """The table of a row."""
    times, before, cells = times_of(row), None, []
    for side, time in times.items():
        gain = f"{before / time:.2f}x" if before else ""
        cells.append([side, f"{time:.1f}", gain, f"{times['baseline'] / time:.2f}x"])
        before = time
    return table(["layer", "µs per step", "over the layer before", "over the baseline"], cells)


def row_of(folder):
    """The lab's row in a run's folder. Raises Unmeasured if it has none."""
    if (row := row_in(folder)) is None:
        raise Unmeasured(f"{folder}: found no row of {TARGET}; expected the folder of a run that has one")
    return row


def main(arguments=None):
    """Print the table of a run that somebody made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder that a run left, with its metrics.json")
    try:
        print(report(row_of(parser.parse_args(arguments).folder)))
    except Unmeasured as reason:
        sys.exit(f"compare_optimizations.py: {reason}")


if __name__ == "__main__":
    main()
