"""What a step does on the GPU, as CUPTI tells it through torch's profiler: kernels with the shape of their launch, copies, graphs.

The profiler is that of torch.autograd, for entering that of torch.profiler imports torch's compiler, which takes seconds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler import profile

from common.python.child.device.helpers import HOLDING, device_helpers
from common.python.child.distributed import Together
from common.python.errors import SideFailure, Status
from common.python.processes.messages import Launch, Span

_HOLD_NS = 300_000_000
_HOST = ("cuda_runtime", "cuda_driver")
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def start_tracing() -> None:
    """Have CUPTI in this process: before a `prepare` captures a graph, or its nodes might be told as one."""
    with profile(use_cpu=False, use_device="cuda", use_kineto=True):
        torch.cuda.synchronize()


def trace(step: Callable[[], object], together: Together) -> tuple[list[Launch], list[Span], dict[str, int]]:
    """The kernels that one call of `step` runs, in the order of their start, all that it does on the GPU, and the host's calls to CUDA.

    The stream is held until all is queued, as for a sample: a profiled launch takes the host longer than many kernels run, so kernels of
    several streams would not overlap. A step that waits for the stream is traced once more, not held. Ranks are held until all have
    queued theirs: who came first would else wait for the others within a collective, in which nothing of its own runs.

    Raises SideFailure if nothing was seen, which is how a missing permission to use CUPTI shows.
    """
    events = _traced(step, together, hold=True)
    if together.any(device_helpers().expired):
        events = _traced(step, together, hold=False)
    launches, spans = read_trace(events)
    if not spans:
        raise SideFailure(
            Status.LAUNCH_FAILED, "the profiler saw nothing on the GPU; expected a step that runs there and CUPTI to tell of it"
        )
    return launches, spans, host_calls(events)


def host_calls(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How often a Chrome trace's host called each function of CUDA, by its name; the wait that ends a trace is among them."""
    return dict(Counter(str(event["name"]) for event in events if event.get("ph") == "X" and event.get("cat") in _HOST))


def _traced(step: Callable[[], object], together: Together, *, hold: bool) -> list[dict[str, Any]]:
    helpers = device_helpers()
    torch.cuda.synchronize()
    with profile(use_device="cuda", use_kineto=True) as profiler:
        together.meet()
        if hold:
            helpers.block(_HOLD_NS)
        try:
            step()
            if hold:
                together.meet()
        finally:
            helpers.release()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        return of_step(json.loads(path.read_text(encoding="utf-8"))["traceEvents"])


def of_step(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A Chrome trace's events without the kernel that held the stream and the call that launched it."""
    events = list(events)
    holding = {event["args"].get("correlation") for event in events if event.get("name") == HOLDING and "args" in event}
    return [event for event in events if event.get("args", {}).get("correlation", HOLDING) not in holding]


def read_trace(events: Iterable[Mapping[str, Any]]) -> tuple[list[Launch], list[Span]]:
    """Launches and spans of a Chrome trace's events. Host and device events of a launch share a correlation id, and so do a graph's."""
    timed = [event for event in events if event.get("ph") == "X"]
    started_by = {event["args"].get("correlation"): str(event["name"]) for event in timed if event.get("cat") in _HOST}
    on_device = sorted((event for event in timed if event.get("cat") in _DEVICE), key=lambda event: event["ts"])
    launches = [_launch(event, started_by) for event in on_device if event["cat"] == "kernel"]
    # Chrome's times are in microseconds.
    return launches, [_span(event) for event in on_device]


def _span(event: Mapping[str, Any]) -> Span:
    begin = event["ts"]
    return Span(name=event["name"], start_ns=1e3 * begin, end_ns=1e3 * (begin + event["dur"]), stream=event["args"].get("stream", 0))


def _launch(event: Mapping[str, Any], started_by: Mapping[int, str]) -> Launch:
    told = event["args"]
    return Launch(
        kernel=event["name"],
        call=told["correlation"],
        in_graph="GraphLaunch" in started_by.get(told["correlation"], ""),
        grid=tuple(told["grid"]),
        block=tuple(told["block"]),
        cluster=None,
        shared_bytes=told["shared memory"],
        registers=told["registers per thread"],
        occupancy_percent=told.get("est. achieved occupancy %"),
    )


def compiled_kernels() -> list[str]:
    """Cubins that Triton, and so torch.compile, put into this process's compile cache, which must have been empty."""
    if "triton" not in sys.modules:
        return []
    from triton import knobs

    return sorted(map(str, Path(knobs.cache.dir).rglob("*.cubin")))
