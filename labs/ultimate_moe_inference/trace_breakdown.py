"""Where a traced step's time goes: idle, computing, or copies and communication alone, and which kernels took it.

The questions, and the sense of each answer, are those of HolisticTraceAnalysis. Traces are what `benchmark_cli run --profile` left: of
nsys, or of torch.profiler where nsys gives nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from common.python.profile.steps import GpuWork, SeenStep, length, merged, read_chrome
from labs.ultimate_moe_inference.scaling_study.study import TARGET, table

SHOWN = 5  # kernels of a side in a report


@dataclass(frozen=True)
class Kernel:
    """All launches of one kernel in a step: how many, and the ns they took together and at most."""

    name: str
    kind: str
    launches: int
    total_ns: float
    longest_ns: float


@dataclass(frozen=True)
class Breakdown:
    """A step from its first work on the GPU to its last: ns in which nothing ran, something computed, and something else ran alone.

    `kinds` has the busy ns by all kinds that ran in them, such as "communication + compute".
    """

    span_ns: float
    idle_ns: float
    compute_ns: float
    other_ns: float
    kinds: dict[str, float]
    kernels: tuple[Kernel, ...]


def kind_of(work: GpuWork) -> str:
    """Whether it computes, moves memory, or is a kernel of NCCL's."""
    if work.kind != "kernel":
        return "memory"
    return "communication" if work.name.startswith("nccl") else "compute"


def breakdown_of(seen: SeenStep) -> Breakdown:
    """What a step comes to."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    launches: dict[tuple[str, str], list[float]] = defaultdict(list)
    for work in seen.work:
        spans[kind_of(work)].append((work.start_ns, work.end_ns))
        launches[work.name, kind_of(work)].append(work.end_ns - work.start_ns)
    busy = merged(span for kind in spans.values() for span in kind)
    span = busy[-1][1] - busy[0][0] if busy else 0.0
    compute = length(merged(spans["compute"]))
    return Breakdown(
        span_ns=span,
        idle_ns=span - length(busy),
        compute_ns=compute,
        other_ns=length(busy) - compute,
        kinds=_by_kinds({kind: merged(each) for kind, each in spans.items()}),
        kernels=tuple(
            sorted(
                (Kernel(name, kind, len(took), sum(took), max(took)) for (name, kind), took in launches.items()),
                key=lambda kernel: (-kernel.total_ns, kernel.name),
            )
        ),
    )


def _by_kinds(spans: Mapping[str, Iterable[tuple[float, float]]]) -> dict[str, float]:
    edges = sorted((at, kind) for kind, each in spans.items() for span in each for at in span)
    found: dict[str, float] = defaultdict(float)
    running: set[str] = set()
    for (at, kind), (after, _) in pairwise(edges):
        running ^= {kind}  # a kind's spans do not touch, so an edge starts or ends it
        if running and after > at:
            found[" + ".join(sorted(running))] += after - at
    return dict(found)


def collect(folder: Path, sides: Iterable[str]) -> dict[str, Path]:
    """Writes a Chrome trace a side into `folder`/profiling, of those that the run traced; HolisticTraceAnalysis takes a side for a rank."""
    row = folder / TARGET.replace("/", "_").replace(":", "_")
    traces, files = _traces(row), {}
    for rank, side in enumerate(side for side in sides if side in traces):
        files[side] = folder / "profiling" / f"{rank}_{side}.json"
        files[side].parent.mkdir(exist_ok=True)
        files[side].write_text(json.dumps({"distributedInfo": {"rank": rank}, **traces[side]}))
    return files


def _traces(row: Path) -> dict[str, dict[str, Any]]:
    joint = row / "profile.chrome.json"
    if not joint.exists():
        return {file.parent.name: json.loads(file.read_text()) for file in row.glob("*/trace.json")}
    joined = json.loads(joint.read_text())["traceEvents"]
    sides = {event["pid"]: event["args"]["name"].rpartition("/")[2] for event in joined if event["name"] == "process_name"}
    events: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in joined:
        side = sides[event["pid"]]
        events[side].append({**event, "pid": 0, **({"args": {"name": side}} if event["name"] == "process_name" else {})})
    return {side: {"traceEvents": each} for side, each in events.items()}


def read(files: Mapping[str, Path]) -> dict[str, Breakdown]:
    """The breakdown of each side whose trace has work on a GPU."""
    found = {side: breakdown_of(read_chrome(file, "")) for side, file in files.items()}
    return {side: each for side, each in found.items() if each.span_ns}


def temporal(found: Mapping[str, Breakdown]) -> str:
    """The table of HolisticTraceAnalysis' get_temporal_breakdown."""
    cells = [
        [side, f"{each.span_ns / 1e3:.1f}", *(f"{ns / each.span_ns:.1%}" for ns in (each.idle_ns, each.compute_ns, each.other_ns))]
        for side, each in found.items()
    ]
    return table(["layer", "µs from first to last work", "idle", "computes", "only copies or communicates"], cells)


def beside_hta(found: Mapping[str, Breakdown], document: Mapping[str, Any]) -> str:
    """The table of the breakdowns in µs, each beside what read_by_hta.py's `document` has for the same trace."""
    cells = []
    for side, each in found.items():
        theirs = document["sides"][side]
        ours = {"span": each.span_ns, "idle": each.idle_ns, "compute": each.compute_ns, "other": each.other_ns}
        cells.append([side, *(text for name, ns in ours.items() for text in (f"{ns / 1e3:.1f}", f"{theirs[name]:.1f}"))])
    names = ("first to last work", "idle", "computes", "only copies")
    return table(["layer", *(head for name in names for head in (name, "HTA"))], cells)


def kernels(found: Mapping[str, Breakdown]) -> str:
    """The table of HolisticTraceAnalysis' get_gpu_kernel_breakdown: the kernels that took most, the others in one row, for each side."""
    cells = []
    for side, each in found.items():
        total = sum(kernel.total_ns for kernel in each.kernels)
        rest = each.kernels[SHOWN:]
        shown = [(f"`{_short(kernel.name)}`", kernel.kind, kernel) for kernel in each.kernels[:SHOWN]]
        if rest:
            ns, most = sum(kernel.total_ns for kernel in rest), max(kernel.longest_ns for kernel in rest)
            shown.append((f"{len(rest)} others", "", Kernel("", "", sum(kernel.launches for kernel in rest), ns, most)))
        for name, kind, kernel in shown:
            mean, longest = kernel.total_ns / kernel.launches / 1e3, kernel.longest_ns / 1e3
            times = [f"{kernel.total_ns / 1e3:.1f}", f"{mean:.1f}", f"{longest:.1f}", f"{kernel.total_ns / total:.1%}"]
            cells.append([side, name, kind, str(kernel.launches), *times])
    return table(["layer", "kernel", "kind", "launches", "µs", "mean µs", "longest µs", "of all kernels"], cells)


def _short(name: str) -> str:
    name = name.removeprefix("void ").replace("|", "/")
    return name if len(name) <= 60 else f"{name[:57]}..."
