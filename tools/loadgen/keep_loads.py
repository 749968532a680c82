"""Keeps what requests saw at several loads: `python tools/loadgen/keep_loads.py RUN/metrics.json` writes chNN/loads_<gpu>.json.

Each row that served requests at shares of saturation takes the place of its pair's earlier record. Several runs of a pair are one record
if nothing but their loads differs, so that a long sweep may be cut in two. `tools/checks/pages.py` shows the records in RESULTS.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.gate.expectations import key_of_names
from common.python.pairs.serving import LOAD
from common.python.project import PROJECT_ROOT
from common.python.results import SCHEMA_VERSION, Document, Interval, Metrics, Origin, PairResult, PairTiming, ServingFigures
from common.python.storage import document_text, read_document, write_whole

TTFT, TTFT_TAIL, TPOT, ITL_TAIL, GOODPUT = "ttft_ms.p50", "ttft_ms.p95", "tpot_ms.p50", "itl_ms.p95", "goodput"
FIGURES = (TTFT, TTFT_TAIL, TPOT, ITL_TAIL, "output_tokens_per_s", "requests_per_s", GOODPUT)


class ServedLoad(Document):
    """What each side's requests saw at one load, a share of saturation: figures by side, over process pairs."""

    load: float = Field(gt=0)
    offered_per_s: float
    saturation_per_s: float
    process_pairs: int
    sides: dict[str, dict[str, Interval]]


class LoadSweep(Document):
    """A pair's loads, rising, at one shape, with the service level that goodput counts against; an origin for each run."""

    shape: dict[str, int | float | bool | str]
    slo_ttft_ms: float
    slo_tpot_ms: float
    origins: tuple[Origin, ...] = Field(min_length=1)
    loads: tuple[ServedLoad, ...] = Field(min_length=1)


class Loads(Document):
    """`chNN/loads_<gpu>.json`: by name the pairs of one folder whose loads were measured on one GPU model."""

    schema_version: Literal[1] = SCHEMA_VERSION
    gpu: str
    pairs: dict[str, LoadSweep] = {}


def loads_path(folder: Path, key: str) -> Path:
    """The file of one folder and GPU model; `key` is as `gpu_key` makes it."""
    return folder / f"loads_{key}.json"


def read_loads(path: Path) -> Loads:
    """The file at `path`. Raises BenchmarkError, naming it, for what is none, or another model's."""
    loads = read_document(path, Loads)
    if path != loads_path(path.parent, loads.gpu):
        raise BenchmarkError(
            f"{path}: found loads of {loads.gpu!r}; expected the file's name to be {loads_path(path.parent, loads.gpu).name}"
        )
    return loads


def sweep_of(row: PairResult) -> LoadSweep:
    """The loads of one row. Raises BenchmarkError, without the file's name, for a row without loads, or not of a GPU."""
    timings = [timing for timing in row.timings.values() if timing.serving]
    loads = [load for timing in timings if timing.serving and (load := _load_of(timing, timing.serving))]
    if not loads or not (serving := timings[0].serving):
        raise BenchmarkError(f"found no requests at a share of saturation; expected a run with --sweep {LOAD}=0.5,0.8")
    if not (row.origin and row.origin.gpus):
        raise BenchmarkError("found a row that no GPU made; expected loads of a GPU")
    return LoadSweep(
        shape={key: value for key, value in timings[0].shape.items() if key != LOAD},
        slo_ttft_ms=serving.slo_ttft_ms,
        slo_tpot_ms=serving.slo_tpot_ms,
        origins=(row.origin,),
        loads=tuple(sorted(loads, key=lambda each: each.load)),
    )


def _load_of(timing: PairTiming, serving: ServingFigures) -> ServedLoad | None:
    """What `timing` says of its load; None where all requests come at once, or at a rate that is no share of saturation."""
    if not (serving.offered_per_s and serving.saturation_per_s):
        return None
    return ServedLoad(
        load=round(serving.offered_per_s / serving.saturation_per_s, 6),
        offered_per_s=serving.offered_per_s,
        saturation_per_s=serving.saturation_per_s,
        process_pairs=len(timing.units),
        sides={side: {name: own[name] for name in FIGURES if name in own} for side, own in serving.figures.items()},
    )


def key_of(sweep: LoadSweep) -> str:
    """The key of the GPU model that made it."""
    return key_of_names([gpu.rpartition(" ")[0] for gpu in sweep.origins[0].gpus])


def joined(first: LoadSweep, second: LoadSweep) -> LoadSweep:
    """Both as one. Raises BenchmarkError, without the file's name, where more than the loads differs, or a load is in both."""
    for (what, one), (_, other) in zip(_alike(first), _alike(second), strict=True):
        if one != other:
            raise BenchmarkError(f"{what} is {other}; expected {one}, as in the run before it")
    if both := {each.load for each in first.loads} & {each.load for each in second.loads}:
        raise BenchmarkError(f"{LOAD}={min(both):g} is in the run before it too; expected each load once")
    loads = tuple(sorted((*first.loads, *second.loads), key=lambda each: each.load))
    return first.model_copy(update={"loads": loads, "origins": (*first.origins, *second.origins)})


def _alike(sweep: LoadSweep) -> Iterator[tuple[str, object]]:
    """What runs of one record have in common, in words."""
    origin = sweep.origins[0]
    yield "its GPU", key_of(sweep)
    yield "its shape", " ".join(f"{key}={value}" for key, value in sweep.shape.items())
    yield "its service level", f"{sweep.slo_ttft_ms:g} and {sweep.slo_tpot_ms:g} ms"
    yield "its commit", f"{origin.commit[:10]}{' with changes' if origin.dirty else ''}"
    yield "its driver", origin.driver
    yield "its torch", origin.torch


def kept(runs: Iterable[Path], root: Path) -> dict[Path, Loads]:
    """What the files below `root` should be, by path, with the rows of `runs`. Raises BenchmarkError, naming the file of a run."""
    found: dict[tuple[Path, str], LoadSweep] = {}
    for path in runs:
        for row in read_document(path, Metrics).rows:
            workload, name = root / row.workload_file, row.target.partition(":")[2]
            if not workload.is_file():
                raise BenchmarkError(f"{path}: found no {row.workload_file} in this tree; expected a run of its pairs")
            try:
                sweep = sweep_of(row)
                place = loads_path(workload.parent, key_of(sweep)), name
                found[place] = joined(found[place], sweep) if place in found else sweep
            except BenchmarkError as error:
                raise BenchmarkError(f"{path}: {row.target}: {error}") from error
    files: dict[Path, Loads] = {}
    for (path, name), sweep in found.items():
        file = files.get(path) or (read_loads(path) if path.is_file() else Loads(gpu=key_of(sweep)))
        files[path] = file.model_copy(update={"pairs": dict(sorted({**file.pairs, name: sweep}.items()))})
    return files


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Write the files, all or none, and name each; USAGE if a run has nothing to keep."""
    parser = Arguments(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="METRICS", help="metrics.json of a run with --sweep arrival_poisson=...")
    try:
        files = kept(parser.parse_args(arguments).runs, root)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    for path, loads in files.items():
        write_whole(path, document_text(loads))
        print(f"{path.relative_to(root)}: {', '.join(loads.pairs)}")
    return ExitCode.GOOD


if __name__ == "__main__":
    exit_with(main)
