"""Print which layout of ranks ch19:adaptive_parallelism's planner picks for batches of a model, and where it changes its mind.

    ./setup.sh python ch19/adaptive_parallelism_strategy.py [--model-size 7B|13B|70B] [--ranks 2] [--link 300e9]

Calculated from the rates that the planner assumes of a GPU, nothing is measured. `--link` is another link's rate in bytes per second.
Widths are Llama-2's.
"""

import argparse
import math
from dataclasses import replace

from optimized_adaptive_parallelism import Machine, plan

SIZES = {"7B": (4096, 11008), "13B": (5120, 13824), "70B": (8192, 28672)}  # of the stream, and of hidden units
MOST = 1 << 20  # tokens of each rank: products take longer than any weights to come


def crossing(picked):
    """The least tokens per rank from which on replicas are picked, by bisection: of MOST they always are."""
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if picked(middle) == "replicas" else (middle, high)
    return high


def rate(said):
    """A flag's rate above 0."""
    value = float(said)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"found {said!r}; expected bytes per second above 0")
    return value


def main(arguments=None):
    """A line for each number of tokens, and the crossing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model-size", choices=SIZES, default="7B", help="whose widths (default: 7B)")
    parser.add_argument("--ranks", type=int, choices=(2, 4, 8), default=2, help="GPUs (default: 2)")
    parser.add_argument("--link", type=rate, default=Machine.link, help="bytes per second between GPUs (default: 300e9)")
    options = parser.parse_args(arguments)
    (width, hidden), machine = SIZES[options.model_size], replace(Machine(), link=options.link)

    def picked(tokens):
        return plan(tokens, options.ranks, width, hidden, machine)

    print(f"{options.model_size}: width {width}, {hidden} hidden units, {options.ranks} ranks; calculated, not measured")
    for tokens in (1, 16, 128, 1024, 8192):
        print(f"{tokens:>6} tokens per rank: {picked(tokens)}")
    print(f"replicas from {crossing(picked)} tokens per rank on")


if __name__ == "__main__":
    main()
