"""Old runs and builds removed: what nobody reads any more, and never what was measured of a machine."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from common.python.errors import BenchmarkError

_RUN = re.compile(r"\d{8}_\d{6}(?:_\d+)?")  # as a run without --artifacts-dir calls its folder
_DAY_S = 86400.0


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be: the paths and their bytes."""

    paths: tuple[Path, ...]
    size: int


def prune(artifacts: Path, cache: Path, *, keep: int, days: float, dry_run: bool = False) -> Pruned:
    """Remove runs in `artifacts`, but for the newest `keep` and those that ended in the last `days`, and builds not used for as long.

    A folder with another name than the time of a run stays, and so do `machines`. Raises BenchmarkError for what cannot be removed.
    """
    before = time.time() - days * _DAY_S
    runs = sorted((path for path in _entries(artifacts) if path.is_dir() and _RUN.fullmatch(path.name)), reverse=True)
    old = [path for path in runs[keep:] if _newest(path) < before]
    old += [path for path in _entries(cache / "build") if _newest(path) < before]
    size = sum(_size(path) for path in old)
    for path in () if dry_run else old:
        _remove(path)
    return Pruned(tuple(old), size)


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _files(path: Path) -> Iterator[Path]:
    return (each for each in (path.rglob("*") if path.is_dir() else [path]) if each.is_file() and not each.is_symlink())


def _newest(path: Path) -> float:
    """When the last of its files was written, or last read where the file system tells."""
    return max((max(each.stat().st_mtime, each.stat().st_atime) for each in _files(path)), default=path.stat().st_mtime)


def _size(path: Path) -> int:
    return sum(each.stat().st_size for each in _files(path))


def _remove(path: Path) -> None:
    remove: Callable[[Path], object] = shutil.rmtree if path.is_dir() else Path.unlink
    try:
        remove(path)
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}; expected to remove it") from error
