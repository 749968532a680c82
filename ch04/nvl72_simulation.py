"""A SIMULATION, not a measurement: an all-reduce of gradients over 72 and 144 GPUs, priced message by message.

./setup.sh python ch04/nvl72_simulation.py [--megabytes 1024]

A round takes the latency of its slowest link, and the longest that any GPU's link is busy with what the GPU sends over it. Links carry
bytes at LINKS' rates whatever else runs; switches, kernels and additions cost nothing. Compare schedules by it, never machines.
"""

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass

from shared_hierarchy import flat, hierarchical

ELEMENT = 4  # bytes
RINGS = 8  # that a flat all-reduce shares its bytes among, so that it leaves a domain at several GPUs


@dataclass(frozen=True)
class Link:
    """What a GPU can send in one direction, bytes a second, and seconds until the first byte arrives."""

    rate: float
    latency: float


LINKS = {  # data sheets' rates for one direction; the latencies are assumptions
    "nvlink5": Link(900e9, 2e-6),
    "infiniband_400": Link(50e9, 5e-6),
    "ethernet_200": Link(25e9, 10e-6),
}
LAYOUTS = {  # domains, GPUs in each, the link inside, the link of a GPU to other domains
    "9 hosts of 8": (9, 8, "nvlink5", "infiniband_400"),
    "1 rack of 72": (1, 72, "nvlink5", "infiniband_400"),
    "2 racks of 72": (2, 72, "nvlink5", "infiniband_400"),
    "2 racks of 72, Ethernet": (2, 72, "nvlink5", "ethernet_200"),
}


def priced(rounds, domain_of, inside, across):
    """Seconds that the rounds take, and the bytes that cross between domains."""
    seconds, crossing = 0.0, 0
    for messages in rounds:
        sent = defaultdict(int)
        for message in messages:
            size = ELEMENT * (message.span[1] - message.span[0])
            crosses = domain_of[message.source] != domain_of[message.target]
            sent[message.source, crosses] += size
            crossing += size * crosses
        times = [link.latency + size / link.rate for (_, crosses), size in sent.items() for link in [across if crosses else inside] if size]
        seconds += max(times, default=0.0)
    return seconds, crossing


def simulated(domains, gpus, inside, across, elements):
    """By schedule: seconds and crossing bytes of an all-reduce of `elements` float32 values over `domains` of `gpus` each."""
    groups = [list(range(first, first + gpus)) for first in range(0, domains * gpus, gpus)]
    domain_of = {gpu: number for number, group in enumerate(groups) for gpu in group}
    schedules = {
        "one ring": flat(groups, elements),
        f"{min(RINGS, gpus)} rings": flat(groups, elements, min(RINGS, gpus)),
        "hierarchical": hierarchical(groups, elements),
    }
    return {name: priced(rounds, domain_of, LINKS[inside], LINKS[across]) for name, rounds in schedules.items()}


def main(arguments=None):
    """Print a row for each layout and schedule; 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1024, help="of gradients on each GPU, 1e6 bytes")
    flags = parser.parse_args(arguments)
    if flags.megabytes < 1:
        parser.error(f"--megabytes: found {flags.megabytes}; expected at least 1")
    print(f"SIMULATED, not measured: an all-reduce of {flags.megabytes} MB a GPU; rates from data sheets, latencies assumed")
    for layout, (domains, gpus, inside, across) in LAYOUTS.items():
        for schedule, (seconds, crossing) in simulated(domains, gpus, inside, across, flags.megabytes * 10**6 // ELEMENT).items():
            print(f"{layout:>24}  {schedule:>12}  {1e3 * seconds:>9.2f} ms  {crossing / 1e9:>8.2f} GB cross between domains")
    return 0


if __name__ == "__main__":
    sys.exit(main())
