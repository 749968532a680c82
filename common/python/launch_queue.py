"""The stream of a process whose launches cost the GPU least.

The driver's queues are of two kinds: behind streams of the one a launch takes an H200 145 ns longer, whatever the kernel, its code and its
buffers. Streams that were made one after the other share their kind, five of torch's at a time; which of them are slow is chance, and
stays as it is for as long as the process lives. So a side that is timed on any stream has an offset that no number of samples removes.
"""

from __future__ import annotations

import statistics

import torch

from common.python.device_helpers import DeviceHelpers, device_helpers

_STREAMS = 32  # of torch's pool
_STRIDE = 4
_LAUNCHES = 16
_ROUNDS = 5  # and one before them, in which queues are set up
_HOLD_NS = 50_000_000


def quickest_stream() -> tuple[torch.cuda.Stream, float]:
    """A new stream and the GPU's time for a launch on it in ns: of those that torch makes apart from each other, the one with the least.

    To be asked while nothing else is at work on the GPU.
    """
    helpers = device_helpers()
    streams = [torch.cuda.Stream() for _ in range(_STREAMS)][::_STRIDE]
    rounds = [[_launch_ns(helpers, stream) for stream in streams] for _ in range(1 + _ROUNDS)]
    costs = [statistics.median(times) for times in zip(*rounds[1:], strict=True)]
    least = min(range(len(streams)), key=costs.__getitem__)
    return streams[least], costs[least]


def _launch_ns(helpers: DeviceHelpers, stream: torch.cuda.Stream) -> float:
    """The GPU's time for each of some kernels that do nothing, all queued before the first begins."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        try:
            helpers.block(_HOLD_NS)
            start.record()
            for _ in range(_LAUNCHES):
                helpers.spin(0)
            stop.record()
        finally:
            helpers.release()
        stream.synchronize()
    return float(start.elapsed_time(stop)) * 1e6 / _LAUNCHES
