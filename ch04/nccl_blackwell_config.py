"""Prints a preset's environment for NCCL, or measures which preset is fastest for a message of a given size.

./setup.sh python ch04/nccl_blackwell_config.py --preset nvl72          as `export` lines for a shell; what is set there already stays
torchrun --nproc-per-node 2 ch04/nccl_blackwell_config.py               a table: all-reduces of each size in each preset's communicator
"""

import argparse
import os
import shlex
import statistics
import sys
import time

import torch
import torch.distributed as dist
from shared_nccl_presets import DEFAULTS, ENVIRONMENTS, communicators
from shared_torchrun import joined

GAIN = 1.03  # what a preset must win by: less is noise
ROUNDS = 20
HOLD = 1_000_000  # cycles that the stream is busy while the host launches: half a millisecond or so
SIZES = tuple(1 << power for power in range(12, 29, 4))  # bytes


def on_device(buffer, group):
    """Seconds of an all-reduce between two events, without the host's launch: the stream is held until all is queued.

    A message of one element goes first. When it ends, all ranks are there, so no rank's time has a wait for another's host.
    """
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(HOLD)
    dist.all_reduce(buffer[:1], group=group)
    begin.record()
    dist.all_reduce(buffer, group=group)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def on_host(buffer, group):
    """Seconds of an all-reduce until all ranks have it."""
    begin = time.perf_counter()
    dist.all_reduce(buffer, group=group)
    dist.barrier()
    return time.perf_counter() - begin


def measured(groups, buffer, rounds=ROUNDS):
    """Median seconds of an all-reduce of `buffer` in each group, the slowest rank's; groups take turns, round by round. Collective."""
    times = {preset: [] for preset in groups}
    timed = on_device if buffer.is_cuda else on_host
    for preset, group in list(groups.items()) * rounds:
        dist.barrier()
        times[preset].append(timed(buffer, group))
    medians = torch.tensor([statistics.median(of_preset) for of_preset in times.values()], device=buffer.device)
    dist.all_reduce(medians, op=dist.ReduceOp.MAX)  # so that all ranks choose the same
    return dict(zip(times, medians.tolist(), strict=True))


def chosen(times):
    """The name of the fastest preset; DEFAULTS unless it is at least GAIN times faster than those."""
    fastest = min(times, key=times.__getitem__)
    return fastest if times[fastest] * GAIN <= times[DEFAULTS] else DEFAULTS


def fastest_for(buffer):
    """The group in which an all-reduce of messages like `buffer`, which should hold zeros, is fastest here. Collective."""
    groups = communicators()
    if len(groups) == 1:
        return groups[DEFAULTS]
    measured(groups, buffer)  # the first all-reduce of a communicator connects its ranks
    preset, again = (chosen(measured(groups, buffer)) for _ in range(2))
    return groups[preset if preset == again else DEFAULTS]  # of four presets one may win by chance: it must win twice


def exports(preset, environment):
    """Lines for a shell that set what `environment` does not."""
    return [f"export {name}={shlex.quote(value)}" for name, value in ENVIRONMENTS[preset].items() if name not in environment]


def main(arguments=None):
    """Print one or the other; 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=ENVIRONMENTS, help="print this preset's environment")
    preset = parser.parse_args(arguments).preset
    if preset:
        print("\n".join(exports(preset, os.environ)))
        return 0
    with joined() as here:
        groups = communicators()
        for size in SIZES:
            buffer = torch.zeros(size // 4, device=here.device)
            measured(groups, buffer, rounds=3)
            times = measured(groups, buffer)
            if here.rank == 0:
                row = "  ".join(f"{preset} {seconds * 1e6:.1f} us" for preset, seconds in times.items())
                print(f"{size:>12} bytes: {row}: {chosen(times)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
