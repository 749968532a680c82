"""Keeps what a sweep measured: `python tools/campaign/keep_sweep.py RUN/metrics.json` writes a file in each pair's folder.

Rows that served requests at shares of saturation go to `loads_<gpu>.json`, other rows with `--sweep` to `sweeps_<gpu>.json`. A sweep takes
the place of its pair's earlier one over the same entry. Several runs of a pair are one sweep if nothing but the swept values differs, so
that a long sweep may be cut in two. `tools/checks/pages.py` shows all sweeps in RESULTS.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.pairs.serving import LOAD
from common.python.project import PROJECT_ROOT
from common.python.results import Metrics, PairResult
from common.python.storage import document_text, read_document, write_whole
from tools.campaign.sweeps import Loads, LoadSweep, Sweeps, TimeSweep, kept_path, read_kept, sweep_of


def kept(runs: Iterable[Path], root: Path, hidden: str = "") -> dict[Path, Loads | Sweeps]:
    """What the files below `root` should be, by path, with the rows of `runs`. Raises BenchmarkError, naming the file of a run.

    `hidden` is the equation of what the optimized sides hide, "" where they hide nothing.
    """
    by_load: dict[tuple[Path, str], LoadSweep] = {}
    by_entry: dict[tuple[Path, str, str], TimeSweep] = {}
    for path in runs:
        for row in read_document(path, Metrics).rows:
            workload, name = root / row.workload_file, row.target.partition(":")[2]
            if not workload.is_file():
                raise BenchmarkError(f"{path}: found no {row.workload_file} in this tree; expected a run of its pairs")
            try:
                sweep = _swept(row, hidden)
                if isinstance(sweep, LoadSweep):
                    place = kept_path(workload.parent, Loads, sweep.key), name
                    by_load[place] = by_load[place].joined(sweep) if place in by_load else sweep
                else:
                    where = kept_path(workload.parent, Sweeps, sweep.key), name, sweep.entry
                    by_entry[where] = by_entry[where].joined(sweep) if where in by_entry else sweep
            except BenchmarkError as error:
                raise BenchmarkError(f"{path}: {row.target}: {error}") from error
    return {**_with_loads(by_load), **_with_times(by_entry)}


def _with_loads(found: Mapping[tuple[Path, str], LoadSweep]) -> dict[Path, Loads]:
    files: dict[Path, Loads] = {}
    for (path, name), sweep in found.items():
        file = files.get(path) or (read_kept(path, Loads) if path.is_file() else Loads(gpu=sweep.key))
        files[path] = file.model_copy(update={"pairs": dict(sorted({**file.pairs, name: sweep}.items()))})
    return files


def _with_times(found: Mapping[tuple[Path, str, str], TimeSweep]) -> dict[Path, Sweeps]:
    files: dict[Path, Sweeps] = {}
    for (path, name, entry), sweep in found.items():
        file = files.get(path) or (read_kept(path, Sweeps) if path.is_file() else Sweeps(gpu=sweep.key))
        own = dict(sorted({**file.pairs.get(name, {}), entry: sweep}.items()))
        files[path] = file.model_copy(update={"pairs": dict(sorted({**file.pairs, name: own}.items()))})
    return files


def _swept(row: PairResult, hidden: str) -> LoadSweep | TimeSweep:
    """What one row swept, with the equation of what is hidden, which every value must fill."""
    sweep = sweep_of(row)
    if not hidden:
        return sweep
    if isinstance(sweep, LoadSweep):
        raise BenchmarkError(f"found --hidden with a sweep of {LOAD}; expected a sweep of times")
    sweep = sweep.model_copy(update={"hidden": hidden})
    for each in sweep.values:
        for side in each.sides:
            sweep.hidden_share(each, side)
    return sweep


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Write the files, all or none, and name each; USAGE if a run has nothing to keep."""
    parser = Arguments(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="METRICS", help="metrics.json of a run with --sweep")
    parser.add_argument(
        "--hidden",
        default="",
        metavar="EQUATION",
        help="seconds that the optimized side hides behind other work, as in a `predicts:` line: what share of them it saved is shown too",
    )
    try:
        given = parser.parse_args(arguments)
        files = kept(given.runs, root, given.hidden)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    for path, file in files.items():
        write_whole(path, document_text(file))
        print(f"{path.relative_to(root)}: {', '.join(file.pairs)}")
    return ExitCode.GOOD


if __name__ == "__main__":
    exit_with(main)
