"""What nsys saw of the links between GPUs: peer copies, how much of them ran under kernels, and the NVLink metrics that were sampled.

nsys samples metrics only where it is asked to; of a report without them the peer copies are told, and how to record the rest.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.machine.description import find_tool, output_of
from common.python.profile.nsys import PEER_COPY, NsysDatabase, UnreadableTrace
from common.python.profile.steps import length, merged, overlap

_EXPORT_S = 300.0
_RECORDED_BY = "nsys profile --gpu-metrics-devices=all --sample=none --cpuctxsw=none --trace=cuda,nvtx --output={stem} PROGRAM"


def metrics_of(database: Path) -> dict[str, Any]:
    """The figures of one exported report; a bandwidth is in GB/s, a metric in its own unit. Raises UnreadableTrace.

    `nvlink` is there if the report has samples of any metric of a GPU: it is empty where none of them is about NVLink.
    """
    with NsysDatabase(database) as tables:
        copies = tables.rows("CUPTI_ACTIVITY_KIND_MEMCPY", "start, end, bytes", f"WHERE copyKind = {PEER_COPY}")
        kernels = tables.rows("CUPTI_ACTIVITY_KIND_KERNEL", "start, end")
        names = dict(tables.rows("TARGET_INFO_GPU_METRICS", "metricId, metricName", "WHERE metricName LIKE '%NVLink%'"))
        sampled = tables.rows("GPU_METRICS", "metricId, value")
        samples: dict[str, list[float]] = {name: [] for name in names.values()}
        for metric, value in sampled:
            if metric in names:
                samples[names[metric]].append(value)
        if not (copies or kernels or sampled or tables.strings):  # nsys names at least what it traced
            raise UnreadableTrace(f"{database}: found nothing that nsys records; expected what `nsys export --type sqlite` writes")
    spans = [(float(start), float(end)) for start, end, _ in copies]
    busy_ns = length(merged(spans))
    moved = sum(count for *_, count in copies)
    nvlink = {name: {"mean": statistics.fmean(values), "maximum": max(values)} for name, values in samples.items() if values}
    return {
        "peer_copies": len(copies),
        "peer_bytes": moved,
        "peer_seconds": busy_ns / 1e9,
        "peer_gb_per_second": moved / busy_ns if busy_ns else 0.0,
        "under_kernels": overlap(spans, [(float(start), float(end)) for start, end in kernels]) if spans and kernels else 0.0,
        **({"nvlink": nvlink} if sampled else {}),
    }


def unsampled(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each report, by its name, in which no metric of a GPU was sampled."""
    for report, figures in found.items():
        if "nvlink" not in figures:
            command = _RECORDED_BY.format(stem=Path(report).stem)
            yield f"{report}: found no row of a table GPU_METRICS; expected a report recorded with --gpu-metrics-devices: {command}"


def reports_named(path: Path) -> Iterator[Path]:
    """The report at `path`; of a pattern that matched nothing for the shell, and of a folder, those further down."""
    if path.is_file():
        yield path
        return
    folder, pattern = (path, "*.nsys-rep") if path.is_dir() else (path.parent, path.name)
    found = sorted(folder.rglob(pattern)) if folder.is_dir() else []
    if not found:
        raise BenchmarkError(f"{path}: no such report; expected a .nsys-rep, or a run's folder with some in it")
    yield from found


def exported(report: Path, folder: Path) -> Path:
    """The SQLite file of a report: beside it if it is there, else made in `folder`. Raises BenchmarkError."""
    beside = report.with_suffix(".sqlite")
    if beside.exists():
        return beside
    nsys, made = find_tool("nsys"), folder / f"{sum(1 for _ in folder.iterdir())}.sqlite"  # every row's report has one name
    if nsys is not None:
        output_of(str(nsys), "export", "--type", "sqlite", "--output", str(made), str(report), timeout_s=_EXPORT_S)
    if not made.exists():
        why = "nsys, which is not installed" if nsys is None else f"{nsys}, which made none"
        raise BenchmarkError(f"{report}: found no {beside.name}; expected one beside it, or one from {why}")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Print the figures of each report as JSON; 1 if one cannot be read or holds no sampled metric."""
    parser = Arguments(description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path, help="artifacts/<run>/*nsys-rep, or a run's folder")
    try:
        with tempfile.TemporaryDirectory() as folder:
            named = [report for path in parser.parse_args(arguments).reports for report in reports_named(path)]
            found = {str(report): metrics_of(exported(report, Path(folder))) for report in named}
    except (BenchmarkError, UnreadableTrace) as error:
        print(f"error: {error}", file=sys.stderr)
        return int(ExitCode.USAGE)
    print(json.dumps(found, indent=2))
    lacking = list(unsampled(found))
    for sentence in lacking:
        print(f"error: {sentence}", file=sys.stderr)
    return int(ExitCode.USAGE if lacking else ExitCode.GOOD)


if __name__ == "__main__":
    exit_with(main)
