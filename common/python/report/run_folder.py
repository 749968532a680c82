"""The run folder: every file is written whole and renamed into place, a target at a time, so a killed run keeps what it had."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Self

from common.python.errors import BenchmarkError, ExitCode, Status
from common.python.pairs.discovery import is_folder
from common.python.report.comment import comment
from common.python.report.csv_table import csv_text
from common.python.report.html import html
from common.python.report.tables import junit, markdown
from common.python.results import Document, Metrics, PairResult, Run, SideMetrics
from common.python.settings import Settings
from common.python.storage import (
    document_text,
    fills_disk,
    keep_room,
    make_folder,
    make_runs_folder,
    read_document,
    runs_folder,
    write_whole,
)

RUN_FILE = "run.json"
METRICS_FILE = "metrics.json"
JUNIT_FILE = "junit.xml"
PART_FILE = "part_metrics.json"  # of a sweep: the values so far
_ROOM_FILE, _ROOM_BYTES = ".room", 1 << 16  # what a run's end is written into if its rows filled the disk
_SMALLEST_FIRST = (JUNIT_FILE, METRICS_FILE, "comment.md", "results.csv", "report.md", "report.html")

# Choices that change which rows are made or where they go, but not one number in a row.
_FREE_ON_RESUME = {
    "targets",
    "resume",
    "artifacts_dir",
    "json_output",
    "dry_run",
    "suite_timeout",
    "llm_analysis",
    "llm_dry_run",
    "llm_tokens",
    "seed",
    "verbose",
    "wait",
    "changed_since",
}


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long, which `make_folder` tells
        return False


def require_usable(settings: Settings) -> None:
    """See that the folder that `--artifacts-dir` names, if any, can be a run's; nothing new is left behind.

    Raises BenchmarkError if it cannot be made or written, if `--resume` finds none, or if it is not empty and `--resume` is not given.
    """
    if settings.artifacts_dir is None:
        return
    if settings.resume and not _is_there(settings.artifacts_dir):
        raise BenchmarkError(f"--resume: {settings.artifacts_dir} does not exist; expected the folder of the run to resume")
    given = settings.artifacts_dir.absolute()
    absent = [each for each in (given, *given.parents) if not _is_there(each)]
    make_folder(settings.artifacts_dir)
    path = settings.artifacts_dir.resolve()
    if not settings.resume and any(path.iterdir()):
        raise BenchmarkError(f"--artifacts-dir {path} is not empty; expected an absent or empty folder, or --resume")
    with suppress(OSError):  # another run may have put something there
        for each in absent:
            each.rmdir()


class RunFolder:
    """artifacts/<run>/: documents of the run at the top, one folder a target, in it one folder a side."""

    def __init__(self, path: Path, run_id: str, saved: Run | None = None, rows: tuple[PairResult, ...] = ()) -> None:
        self.path = path
        self.run_id = run_id
        self.saved = saved
        self._rows = {row.target: row for row in rows}
        self._folders = dict(saved.folders) if saved else {}
        self._rows_kept = ""
        self.name_folders(self._rows)

    @classmethod
    def create(cls, settings: Settings, run_id: str, base: Path | None = None) -> Self:
        """A fresh folder `base`/`run_id` (`_2` and so on if that is taken), or the one that `--artifacts-dir` names.

        `base` is by default that of the root's runs.
        With `--resume` it is opened instead, with the rows it holds and, as `saved`, the run that wrote them.
        Raises BenchmarkError if the folder cannot be made or written, or is not empty and `--resume` is not given.
        """
        if settings.artifacts_dir is None:
            path = _fresh_folder(base or runs_folder(settings.root), run_id)
            return cls(path, path.name)
        require_usable(settings)
        make_folder(settings.artifacts_dir)
        path = settings.artifacts_dir.resolve()
        if not any(path.iterdir()):
            return cls(path, run_id)
        saved, rows = load(path)
        return cls(path, saved.run_id, saved, rows)

    @property
    def rows(self) -> tuple[PairResult, ...]:
        """Every row written so far, those of a resumed run included, in the order they were first written."""
        return tuple(self._rows.values())

    def completed(self, settings: Settings) -> dict[str, PairResult]:
        """The rows that a resumed run need not make again, by target; a row is only written when it is done.

        Raises BenchmarkError if they were made with other settings than `settings`.
        """
        if self.saved is not None:
            _same_settings(self.path / RUN_FILE, self.saved, settings)
        return dict(self._rows)

    def remove_strays(self) -> None:
        """Remove the input files of a run that was killed, which nobody will read again, and the room that it kept for its end."""
        (self.path / _ROOM_FILE).unlink(missing_ok=True)
        for left in self.path.glob("inputs_*"):
            shutil.rmtree(left, ignore_errors=True)

    def name_folders(self, targets: Iterable[str]) -> dict[str, str]:
        """The name of the folder of each of `targets`, and of those that a resumed run had: these keep the names they had."""
        for target in targets:
            self._target_path(target)
        return dict(self._folders)

    def log_path(self, target: str, side: str) -> Path:
        """The folder, made if need be, for what the worker of `side` says, its profiles and its metrics."""
        path = self._target_path(target) / side
        make_folder(path)
        return path

    def write_run(self, run: Run) -> None:
        """Write run.json, and metrics.json with the rows so far, so that even a run that is killed at once can be loaded.

        Room for the run's end is kept from now on.
        """
        keep_room(self.path / _ROOM_FILE, _ROOM_BYTES)
        self._write(METRICS_FILE, self._rows_text())
        self._write(RUN_FILE, document_text(run))

    def write_pair(self, row: PairResult) -> None:
        """Write what is known of a target that is done: its sides, then the pair, then all rows."""
        self._rows[row.target] = row
        folder = self._target_path(row.target)
        for side in row.sides:
            write_whole(folder / side / METRICS_FILE, document_text(side_metrics(row, side)))
        write_whole(folder / METRICS_FILE, document_text(row))
        self._write(METRICS_FILE, self._rows_text())
        if row.status is not Status.TIMEOUT:
            (folder / PART_FILE).unlink(missing_ok=True)

    def write_part(self, row: PairResult) -> None:
        """Write what is known of a sweep of which some values are measured, until the whole row is written."""
        text = document_text(Metrics(run_id=self.run_id, rows=(row,)))
        write_whole(self._target_path(row.target) / PART_FILE, text)

    def begun(self) -> dict[str, PairResult]:
        """By target the rows of which only some values were measured. Raises BenchmarkError, naming the file that is none."""
        found = (self.path / folder / PART_FILE for folder in self._folders.values())
        return {row.target: row for path in found if path.is_file() for row in read_document(path, Metrics).rows}

    def write_second(self, row: PairResult) -> None:
        """Write the second measurement of a target whose first was red, beside the first."""
        write_whole(self._target_path(row.target) / "second_metrics.json", document_text(row))

    def finish(self, run: Run) -> tuple[Run, tuple[str, ...]]:
        """Write the reports, and run.json last: a run.json with an exit code says that everything else is there.

        Of a full disk, run.json and junit.xml say so by the exit code FULL_DISK, and are written before what there may be no room for.
        The run as it is written, and the names of the files that found no room.
        """
        (self.path / _ROOM_FILE).unlink(missing_ok=True)
        if run.exit_code != ExitCode.FULL_DISK and not self._without_room(run, (*_SMALLEST_FIRST, RUN_FILE)):
            return run, ()
        run = run.model_copy(update={"exit_code": int(ExitCode.FULL_DISK)})
        return run, self._without_room(run, (RUN_FILE, *_SMALLEST_FIRST))

    def _without_room(self, run: Run, names: Sequence[str]) -> tuple[str, ...]:
        """Write the files of these names until one finds no room, or of a full disk all that do; the names of those that found none."""
        texts = {
            RUN_FILE: lambda: document_text(run),
            JUNIT_FILE: lambda: junit(run, self.rows),
            METRICS_FILE: self._rows_text,
            **_reports(self.path, run, self.rows),
        }
        lost: list[str] = []
        for name in names:
            if lost and run.exit_code != ExitCode.FULL_DISK:
                break
            try:
                self._write(name, texts[name]())
            except BenchmarkError as error:
                if not fills_disk(error):
                    raise
                lost.append(name)
        return tuple(lost)

    def _rows_text(self) -> str:
        return document_text(Metrics(run_id=self.run_id, rows=self.rows))

    def _write(self, name: str, text: str) -> None:
        """Write a file at the top, but for metrics.json that has its text already: to replace it would take the room of both."""
        if name == METRICS_FILE and text == self._rows_kept:
            return
        write_whole(self.path / name, text)
        if name == METRICS_FILE:
            self._rows_kept = text

    def _target_path(self, target: str) -> Path:
        """`ch07:transpose` lies in `ch07_transpose`; a target that spells like one before it, `ch07_transpose:`..., in a numbered one."""
        if target not in self._folders:
            plain = re.sub(r"[:/]", "_", target)
            names = chain([plain], (f"{plain}.{number}" for number in count(2)))
            taken = set(self._folders.values())
            self._folders[target] = next(name for name in names if name not in taken)
        return self.path / self._folders[target]


def side_metrics(row: PairResult, side: str) -> SideMetrics:
    """The part of `row` that is about `side`, with its samples of every unit and block joined, by named shape."""
    timed = {shape: timing for shape, timing in row.timings.items() if side in timing.time_ns}
    return SideMetrics(
        target=row.target,
        side=side,
        result=row.sides[side],
        time_ns={shape: timing.time_ns[side] for shape, timing in timed.items()},
        samples_ns={
            shape: tuple(sample for unit in timing.units for block in unit.blocks[side] for sample in block.samples_ns)
            for shape, timing in timed.items()
        },
    )


def write_reports(folder: Path, run: Run, rows: Sequence[PairResult]) -> tuple[Path, ...]:
    """Write what people and spreadsheets read of a run into `folder`: report.md and .html, a pull request's comment.md, results.csv."""
    texts = _reports(folder, run, rows)
    for name, text in texts.items():
        write_whole(folder / name, text())
    return tuple(folder / name for name in texts)


def _reports(folder: Path, run: Run, rows: Sequence[PairResult]) -> dict[str, Callable[[], str]]:
    return {
        "report.md": lambda: markdown(run, rows),
        "report.html": lambda: html(run, rows, folder),
        "comment.md": lambda: comment(run, rows),
        "results.csv": lambda: csv_text(rows),
    }


def write_comparison(folder: Path, run: Run, rows: Sequence[PairResult], document: Document) -> tuple[Path, ...]:
    """Write two runs that were compared into `folder`, with `rows` that have the verdicts: comparison.json, junit.xml, comment.md."""
    texts = {"comparison.json": document_text(document), JUNIT_FILE: junit(run, rows), "comment.md": comment(run, rows)}
    for name, text in texts.items():
        write_whole(folder / name, text)
    return tuple(folder / name for name in texts)


def folder_of(path: Path) -> Path:
    """The folder of the run that `path` names: the folder itself, or the run.json or metrics.json in it."""
    return path.parent if path.name in (RUN_FILE, METRICS_FILE) else path


def load(path: Path) -> tuple[Run, tuple[PairResult, ...]]:
    """The run and its rows saved under `path`: the run's folder, or the run.json or metrics.json in it.

    Raises BenchmarkError naming the file, what was found in it and what was expected.
    """
    folder = folder_of(path)
    if not is_folder(folder):
        raise BenchmarkError(f"{path}: no such folder; expected that of a run, with {RUN_FILE} and {METRICS_FILE} in it")
    run = read_document(folder / RUN_FILE, Run)
    metrics = read_document(folder / METRICS_FILE, Metrics)
    if run.run_id != metrics.run_id:
        raise BenchmarkError(f"{folder / METRICS_FILE}: run_id {metrics.run_id}; expected {run.run_id}, that of {RUN_FILE} beside it")
    return run, metrics.rows


def _fresh_folder(base: Path, run_id: str) -> Path:
    make_runs_folder(base)
    number = 1
    while True:
        path = base / (run_id if number == 1 else f"{run_id}_{number}")
        try:
            path.mkdir()  # not exist_ok: of two runs started in the same second, one gets the name
            return path
        except FileExistsError:
            number += 1
        except OSError as error:
            raise BenchmarkError(f"{path}: {error.strerror}; expected to make the run's folder there, or --artifacts-dir") from error


def _same_settings(path: Path, saved: Run, settings: Settings) -> None:
    now = settings.model_dump(mode="json")
    for name in sorted((now.keys() | saved.settings.keys()) - _FREE_ON_RESUME):
        if name not in now or name not in saved.settings:
            raise BenchmarkError(
                f"{path}: found {'no' if name in now else 'a'} setting {name}; expected those of this release, to resume it"
            )
        if now[name] != saved.settings[name]:
            found, expected = (typed(name, settings.get(name)) for settings in (now, saved.settings))
            raise BenchmarkError(f"--resume with {found}; expected {expected}, which made the rows of {path}")


def typed(name: str, value: object) -> str:
    """A setting as it is typed; one that is off, or that a run does not know, as `no --flag`."""
    flag = name if name == "command" else f"--{name.replace('_', '-')}"
    if value in (None, False, [], {}):
        return f"no {flag}"
    if value is True:
        return flag
    entries = [f"{key}={each}" for key, each in value.items()] if isinstance(value, dict) else value
    return f"{flag} {' '.join(map(str, entries)) if isinstance(entries, list) else entries}"
