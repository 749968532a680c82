"""The stream of a process whose launches cost the GPU least.

Streams are of two kinds: behind those of the one a launch takes an H200 145 ns longer, whatever the kernel, its code and its buffers. Those
made one after the other, some five of torch's, are alike; which are slow is chance, and stays so for as long as the process lives,
whatever processes come and go. So a side that is timed on any stream has an offset that no number of samples removes.
"""

from __future__ import annotations

import functools
import statistics
import time

import torch

from common.python.child.device.helpers import DeviceHelpers, device_helpers
from common.python.machine.description import profiler_attached

# Bound before any side is imported, so a side that patches torch patches nothing here.
_Stream = torch.cuda.Stream
_Event = torch.cuda.Event
_work_on = torch.cuda.stream

_STREAMS = 32  # in torch's pool
_STRIDE = 4
_LAUNCHES = 16
_ROUNDS = 3  # and one before them, in which queues are set up
_HOLD_NS = 50_000_000
_PASSES_WITHIN_S = 0.005


def work_on_quickest_stream() -> None:
    """Have this process work on its quickest stream from now on, unless it works on one already; under a profiler on any, as none is held.

    To be done before a side is there, which could else tell by its stream whether it is timed. Contexts that are made or ended on the GPU
    meanwhile disturb the choice.
    """
    # Not the legacy default stream: work that a side puts there by mistake must not look as if it were in order.
    if torch.cuda.current_stream() == torch.cuda.default_stream():
        torch.cuda.set_stream(_Stream() if profiler_attached() else quickest_stream())


def quickest_stream() -> torch.cuda.Stream:
    """The stream on which the GPU takes least time for a launch, of those tried. Some streams take longer, at random per process.

    torch has a pool of streams and hands them out in turn, so the streams that a side creates next are others.
    """
    streams = [_Stream() for _ in range(_STREAMS)][::_STRIDE]
    helpers = device_helpers()
    rounds = [[_launch_ns(helpers, stream) for stream in streams] for _ in range(1 + _ROUNDS)]
    costs = [statistics.median(times) for times in zip(*rounds[1:], strict=True)]
    quickest = streams[costs.index(min(costs))]
    for _ in range(_STREAMS):
        if _Stream() == quickest:
            break
    return quickest


@functools.cache
def stream_past_the_hold() -> torch.cuda.Stream:
    """A stream whose work is done while the current one is held.

    The driver has fewer queues than torch has streams (CUDA_DEVICE_MAX_CONNECTIONS, 8 unless it says otherwise), so another stream's work
    may stand behind the held one's in the same queue.
    """
    for _ in range(_STREAMS):
        stream = _Stream()
        if _passes(device_helpers(), stream):
            break
    return stream


def _passes(helpers: DeviceHelpers, stream: torch.cuda.Stream) -> bool:
    """Whether a kernel on `stream` is done soon although the current stream is held, with a kernel waiting there."""
    done = _Event()
    with _work_on(stream):
        helpers.spin(0)  # sets up its queue
    torch.cuda.synchronize()
    try:
        helpers.block(_HOLD_NS)
        helpers.spin(0)
        with _work_on(stream):
            helpers.spin(0)
            done.record()
        deadline = time.monotonic() + _PASSES_WITHIN_S
        while not (passed := bool(done.query())) and time.monotonic() < deadline:
            time.sleep(0.0)
    finally:
        helpers.release()
        torch.cuda.synchronize()
    return passed


def _launch_ns(helpers: DeviceHelpers, stream: torch.cuda.Stream) -> float:
    """The GPU's time for each of some kernels that do nothing, all queued before the first begins."""
    start, stop = _Event(enable_timing=True), _Event(enable_timing=True)
    with _work_on(stream):
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
