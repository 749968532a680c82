"""Keeps what runs of `again.py`'s plan said: `python tools/campaign/keep_again.py RUN/metrics.json...` adds to `repeats_<gpu>.json`.

Every row is kept, whatever became of it; a run that is kept already is not kept twice. `tools/checks/pages.py` shows all of them in
common/docs/repeated-runs.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.project import PROJECT_ROOT
from common.python.results import Metrics
from common.python.storage import document_text, read_document, write_whole
from tools.campaign.repeats import Repeats, read_repeats, repeats_of, repeats_path


def kept(runs: Iterable[Path], root: Path) -> dict[Path, Repeats]:
    """What the files below `root` should be, with the rows of `runs`. Raises BenchmarkError, naming the file of a run and its row."""
    files = {file.gpu: file for file in read_repeats(root)}
    for path in runs:
        for row in read_document(path, Metrics).rows:
            if not (root / row.workload_file).is_file():
                raise BenchmarkError(f"{path}: found no {row.workload_file} in this tree; expected a run of its pairs")
            try:
                key, found = repeats_of(row)
            except BenchmarkError as error:
                raise BenchmarkError(f"{path}: {row.target}: {error}") from error
            file = files.get(key, Repeats(gpu=key))
            known = {each.run for each in file.rows}
            more = sorted([*file.rows, *(each for each in found if each.run not in known)], key=lambda each: each.run)
            files[key] = file.model_copy(update={"rows": tuple(more)})
    return {repeats_path(root, key): file for key, file in files.items()}


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Write the files, all or none, and say how many rows each has; USAGE if a run has nothing to keep."""
    parser = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="METRICS", help="metrics.json of a run that accepted nothing")
    try:
        files = kept(parser.parse_args(arguments).runs, root)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    for path, file in files.items():
        write_whole(path, document_text(file))
        print(f"{path.relative_to(root)}: {len(file.rows)} timings")
    return ExitCode.GOOD


if __name__ == "__main__":
    exit_with(main)
