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
from common.python.gate.predicted import card_from
from common.python.machine.ceilings import MachineCeilings, ceilings_of
from common.python.pairs.predictions import names_in
from common.python.pairs.serving import LOAD
from common.python.project import PROJECT_ROOT
from common.python.report.run_folder import RUN_FILE
from common.python.results import Metrics, PairResult, Run
from common.python.storage import document_text, read_document, write_whole
from tools.campaign.sweeps import Loads, LoadSweep, OwnConstant, Sweeps, TimeSweep, kept_path, read_kept, sweep_of


def kept(runs: Iterable[Path], root: Path, hidden: str = "") -> dict[Path, Loads | Sweeps]:
    """What the files below `root` should be, by path, with the rows of `runs`. Raises BenchmarkError, naming the file of a run.

    `hidden` is the equation of what the optimized sides hide, "" where they hide nothing. Its constants are those that `peak` measured on
    the machine of a run, where run.json beside the file has them, else those of the model's card.
    """
    by_load: dict[tuple[Path, str], LoadSweep] = {}
    by_entry: dict[tuple[Path, str, str], TimeSweep] = {}
    for path in runs:
        ceilings = _own_ceilings(path) if hidden else None
        for row in read_document(path, Metrics).rows:
            workload, name = root / row.workload_file, row.target.partition(":")[2]
            if not workload.is_file():
                raise BenchmarkError(f"{path}: found no {row.workload_file} in this tree; expected a run of its pairs")
            try:
                sweep = _swept(row, hidden, ceilings)
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


def _own_ceilings(path: Path) -> MachineCeilings | None:
    """The ceilings of the GPU that the run of `path` was held against; None without a run.json beside it, and without ceilings in that."""
    run = path.with_name(RUN_FILE)
    return ceilings_of(read_document(run, Run)).get("cuda") if run.is_file() else None


def _own(hidden: str, row: PairResult, ceilings: MachineCeilings | None) -> dict[str, OwnConstant]:
    """Constants of `hidden` that were measured on the GPU of `row`, as of the time that its origin tells."""
    if not (row.origin and ceilings and ceilings.measured == row.origin.ceilings):
        return {}
    if not row.origin.gpus[0].endswith(f" {ceilings.machine}"):
        return {}
    measured = card_from(ceilings).constants
    return {name: OwnConstant(value=measured[name].value, unit=measured[name].unit) for name in sorted(names_in(hidden) & measured.keys())}


def _swept(row: PairResult, hidden: str, ceilings: MachineCeilings | None) -> LoadSweep | TimeSweep:
    """What one row swept, with the equation of what is hidden, which every value must fill."""
    sweep = sweep_of(row)
    if not hidden:
        return sweep
    if isinstance(sweep, LoadSweep):
        raise BenchmarkError(f"found --hidden with a sweep of {LOAD}; expected a sweep of times")
    own = _own(hidden, row, ceilings)
    values = tuple(each.model_copy(update={"own": own}) for each in sweep.values)
    sweep = sweep.model_copy(update={"hidden": hidden, "values": values})
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
        help="seconds that the optimized side hides behind other work, as in a `predicts:` line: what share of them it saved is shown too; "
        "constants are those of run.json beside METRICS, if `peak` ran there, else those of the model's card",
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
