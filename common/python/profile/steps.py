"""What one step did in time, from any profiler's events: how many launches, how much of the time was idle, what ran side by side."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from common.python.results import StepTrace

Kind = Literal["kernel", "gpu_memcpy", "gpu_memset"]
_KINDS: tuple[Kind, ...] = ("kernel", "gpu_memcpy", "gpu_memset")


@dataclass(frozen=True)
class GpuWork:
    """Something that ran on a GPU, in ns from an origin that a trace shares; `call` numbers the host's call that started it."""

    name: str
    kind: Kind
    start_ns: float
    end_ns: float
    call: int
    stream: int = 0


@dataclass(frozen=True)
class SeenStep:
    """All that one step did on a GPU, and the ns that the host spent in it."""

    work: tuple[GpuWork, ...]
    host_ns: float


def figures(seen: SeenStep, source: Literal["nsys", "torch.profiler"]) -> StepTrace:
    """What a step comes to."""
    kernels = [(each.start_ns, each.end_ns) for each in seen.work if each.kind == "kernel"]
    copies = [(each.start_ns, each.end_ns) for each in seen.work if each.kind != "kernel"]
    everything = merged([*kernels, *copies])
    return StepTrace(
        source=source,
        launches=len({each.call for each in seen.work if each.kind == "kernel"}),
        kernels=len(kernels),
        copies=len(copies),
        host_ns=seen.host_ns,
        span_ns=everything[-1][1] - everything[0][0] if everything else 0.0,
        busy_ns=length(everything),
        overlap_share=overlap(kernels, copies) if kernels and copies else None,
    )


def gap_share(step: StepTrace) -> float:
    """The part of the step's span in which nothing ran on the GPU."""
    return 1 - step.busy_ns / step.span_ns if step.span_ns else 0.0


def overlap(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> float:
    """The time in which something of both runs, as a share of the time of the shorter."""
    one, other = merged(first), merged(second)
    both = sum(max(0.0, min(b, d) - max(a, c)) for a, b in one for c, d in other)
    shorter = min(length(one), length(other))
    return both / shorter if shorter else 0.0


def hidden_share(streams: Iterable[Iterable[tuple[float, float]]]) -> float:
    """The busy time of streams that lies within other streams', as a share of all that can: that of all but the busiest.

    With two streams, the time in which both are busy over the busy time of the shorter. 0 where one stream is all there is.
    """
    busy = [merged(spans) for spans in streams]
    alone = [length(spans) for spans in busy]
    hideable = sum(alone) - max(alone, default=0.0)
    hidden = sum(alone) - length(merged(span for spans in busy for span in spans))
    return hidden / hideable if hideable else 0.0


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same time in spans that do not touch each other."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def length(spans: Iterable[tuple[float, float]]) -> float:
    """The time of spans that do not touch each other."""
    return sum(end - start for start, end in spans)


def chrome_trace(steps: dict[str, SeenStep]) -> str:
    """The steps as a Chrome trace in microseconds, for Perfetto: a process a step, a thread a stream.

    Perfetto drops an event that overlaps another of its thread without lying within it. Kernels of one stream do overlap, by some 64 ns
    with programmatic dependent launch: one that starts before the last of its thread has ended goes to another thread of the stream.
    """
    events: list[dict[str, Any]] = []
    threads = itertools.count(1)  # all different: names are given to a thread, whichever its process
    for process, (label, seen) in enumerate(steps.items(), start=1):
        events.append({"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": label}})
        ends: dict[int, dict[int, float]] = defaultdict(dict)  # by stream and thread
        for work in sorted(seen.work, key=lambda each: each.start_ns):
            thread = next((number for number, end in ends[work.stream].items() if end <= work.start_ns), None)
            if thread is None:
                thread = next(threads)
                name = f"stream {work.stream}, overlapping" if ends[work.stream] else f"stream {work.stream}"
                events.append({"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}})
            ends[work.stream][thread] = work.end_ns
            events.append(
                {
                    "ph": "X",
                    "cat": work.kind,
                    "name": work.name,
                    "pid": process,
                    "tid": thread,
                    "ts": work.start_ns / 1e3,
                    "dur": (work.end_ns - work.start_ns) / 1e3,
                    "args": {"correlation": work.call, "stream": work.stream},
                }
            )
    return json.dumps({"traceEvents": events})


def read_chrome(path: Path, label: str) -> SeenStep:
    """The step of one side in the Chrome trace that torch.profiler wrote; the host's time in it is that of the range `label`."""
    events = [event for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"] if event.get("ph") == "X"]
    work = tuple(
        GpuWork(
            name=event["name"],
            kind=kind,
            start_ns=1e3 * event["ts"],
            end_ns=1e3 * (event["ts"] + event["dur"]),
            call=event["args"].get("correlation", 0),
            stream=event["args"].get("stream", 0),
        )
        for kind in _KINDS
        for event in events
        if event.get("cat") == kind
    )
    return SeenStep(work, sum(1e3 * event["dur"] for event in events if event["name"] == label and event.get("cat") == "user_annotation"))
