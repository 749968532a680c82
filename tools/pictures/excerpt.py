"""Copies some rows of a run into a folder that is small enough to commit: no figure changes, and no path of its machine stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError
from common.python.report.run_folder import METRICS_FILE, RUN_FILE, load
from common.python.results import Metrics, PairResult, Run
from common.python.storage import document_text, write_whole


def excerpt(run: Run, rows: tuple[PairResult, ...], targets: list[str]) -> tuple[Run, Metrics]:
    """The run's documents with the rows of `targets` alone. Raises BenchmarkError for a target that the run does not have."""
    known = {row.target: row for row in rows}
    if missing := [target for target in targets if target not in known]:
        raise BenchmarkError(f"{missing[0]}: found no such row in the run; expected one of {', '.join(known)}")
    kept = tuple(known[target] for target in targets)
    root = str(run.settings.get("root", ""))
    folders = {target: name for target, name in run.folders.items() if target in targets}
    shorter = run.model_copy(update={"folders": folders})
    return (
        Run.model_validate(_without(root, shorter.model_dump(mode="json"))),
        Metrics.model_validate(_without(root, Metrics(run_id=run.run_id, rows=kept).model_dump(mode="json"))),
    )


def _without(root: str, value: Any) -> Any:
    """`value` with paths below `root` relative to it."""
    if isinstance(value, str):
        return value.replace(f"{root}/", "").replace(root, ".") if len(root) > 1 else value
    if isinstance(value, list):
        return [_without(root, each) for each in value]
    if isinstance(value, dict):
        return {key: _without(root, each) for key, each in value.items()}
    return value


def main(arguments: list[str] | None = None) -> int:
    """Write run.json and metrics.json of the rows that are named into a folder."""
    parser = Arguments(description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder")
    parser.add_argument("folder", type=Path, help="where the excerpt goes")
    parser.add_argument("targets", nargs="+", help="the rows to keep, in order")
    chosen = parser.parse_args(arguments)
    try:
        run, metrics = excerpt(*load(chosen.run), chosen.targets)
    except BenchmarkError as error:
        parser.error(str(error))
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for name, document in ((RUN_FILE, run), (METRICS_FILE, metrics)):
        write_whole(chosen.folder / name, document_text(document))
        print(chosen.folder / name)
    return 0


if __name__ == "__main__":
    exit_with(main)
