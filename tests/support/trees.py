"""Trees of empty files for tests of discovery and targets, which go by names alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def write(root: Path, files: Iterable[str]) -> Path:
    """Make the empty `files`, and return `root`."""
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def pair_files(*targets: str) -> list[str]:
    """The three files of each target."""
    split = [target.split(":") for target in targets]
    return [f"{directory}/{role}_{stem}.py" for directory, stem in split for role in ("workload", "baseline", "optimized")]
