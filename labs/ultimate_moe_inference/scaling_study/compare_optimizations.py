"""What each layer of the lab gained in a run: over the layer before, over the baseline, and what the book expects of both.

./setup.sh python labs/ultimate_moe_inference/scaling_study/compare_optimizations.py artifacts/<run>
"""

import argparse
import sys
from pathlib import Path

from labs.ultimate_moe_inference.scaling_study.study import TARGET, Unmeasured, row_in, table, times_of, timing_of

BOOK = {
    "layer1_basics": ("1.05x to 1.1x", "1.1x"),
    "layer2_memory": ("1.1x to 1.2x", "1.3x"),
    "layer3_pipelining": ("1.5x to 2.0x, FlashAttention", "2.0x"),
    "layer4_graphs": ("1.2x to 1.5x, graphs", "2.5x"),
    "layer5_compile": ("1.2x to 1.4x, compiling", "3.5x"),
    "optimized": ("1.5x to 2.0x, speculative decoding", "5.0x"),
}
"""By layer, what the book says that its technique gains, and all layers up to it. The last layer here packs experts instead."""


def verdict_of(interval):
    """What the interval of a gain says: it gains, loses, or neither."""
    if interval["low"] > 1:
        return "gains"
    return "loses" if interval["high"] < 1 else "gains nothing"


def report(row):
    """The table of a row, and a sentence for each layer that gained nothing."""
    times, rungs, before, cells, said = times_of(row), timing_of(row).get("rungs", {}), None, [], []
    for side, time in times.items():
        gain, verdict = f"{before / time:.2f}x" if before else "", ""
        if side in rungs:
            gain = "{estimate:.2f}x [{low:.2f}, {high:.2f}]".format(**rungs[side])
            verdict = verdict_of(rungs[side])
            if verdict != "gains":
                said.append(f"- {side} {verdict} on this model: {gain} over the layer before.\n")
        elif before:
            verdict = "not decided"
        technique, together = BOOK.get(side, ("", ""))
        cells.append([side, f"{time:.1f}", gain, technique, verdict, f"{times['baseline'] / time:.2f}x", together])
        before = time
    head = ["layer", "µs per step", "over the layer before", "the book expects", "here", "over the baseline", "the book expects"]
    return table(head, cells) + ("\n" + "".join(said) if said else "")


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
