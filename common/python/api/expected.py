"""What `--gpu-expectations FILE` keeps: speedups by comparison and machine, each with what was compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import model_validator

from common.python.errors import BenchmarkError
from common.python.pairs.workload import Cache, Clock
from common.python.results import SCHEMA_VERSION, Document, Interval
from common.python.storage import document_text, read_document, write_whole
from common.python.wording import speedup_text

if TYPE_CHECKING:
    from common.python.api.result import Result

WIDEST_PERCENT = 15.0  # the half-width beside the band up to which it is stored: as `run --accept` keeps rows that the host paces
WIDE_PERCENT = 5.0  # a fall that is seen only from here on is told of each time


class Expected(Document):
    """The speedup of one comparison on one machine, and what was compared: the functions' names, their inputs, the clock and the cache."""

    speedup: Interval
    names: tuple[str, ...]
    inputs: dict[str, str]
    clock: Clock
    cache: Cache

    @model_validator(mode="after")
    def _is_a_ratio(self) -> Self:
        if self.speedup.low <= 0:
            raise ValueError(f"speedup.low {self.speedup.low:g}; a ratio of two times is above 0")
        return self

    @classmethod
    def of(cls, result: Result) -> Self:
        """What is kept of a result of two functions."""
        assert result.speedup is not None, "only of two functions"
        now = result.speedup
        return cls(
            speedup=Interval(estimate=now.estimate, low=now.low, high=now.high),
            names=result.names,
            inputs=dict(result.inputs),
            clock=result.clock,
            cache=result.cache,
        )

    def visible_percent(self, band_percent: float) -> float:
        """By how much the speedup has to fall before the gate sees it, in percent, where a later interval is as wide as this."""
        return 100 * (1 - self.speedup.low / self.speedup.high / (1 + band_percent / 100))

    def changed(self, now: Expected) -> str:
        """What `now` compares that this did not, in one sentence; "" where both are of the same question."""
        found, expected = now.model_dump(exclude={"speedup"}), self.model_dump(exclude={"speedup"})
        told = [
            f"the {name} changed: found {_spelt(found[name])}, expected {_spelt(expected[name])}"
            for name in expected
            if found[name] != expected[name]
        ]
        return "; ".join(told)


class ExpectedSpeedups(Document):
    """The file: by comparison, which is a test's id and a count within it, then by the model of the GPU or the CPU."""

    schema_version: Literal[1] = SCHEMA_VERSION
    comparisons: dict[str, dict[str, Expected]] = {}

    def entry(self, key: str, machine: str) -> Expected | None:
        """What is expected of a comparison on a machine, if anything."""
        return self.comparisons.get(key, {}).get(machine)


def read_expected(path: Path, *, required: bool) -> ExpectedSpeedups:
    """What is expected by the file at `path`; nothing where it is not there, and not `required`, but its folder is.

    Raises BenchmarkError, in one sentence, for anything else.
    """
    if not path.exists():
        if not path.parent.is_dir():
            raise BenchmarkError(f"{path}: found no folder {path.parent}; expected the folder of {path.name} to be there")
        if required:
            raise BenchmarkError(f"{path} is missing; expected the speedups that comparisons are required to have there")
        return ExpectedSpeedups()
    if _is_of_before(path):
        raise BenchmarkError(
            f"{path}: found speedups without the inputs they are of, as an earlier version stored them; "
            f"expected schema version {SCHEMA_VERSION}: remove the file, and store them anew"
        )
    return read_document(path, ExpectedSpeedups)


def _is_of_before(path: Path) -> bool:
    """Whether a file maps comparisons to bare intervals; what else it is `read_document` tells."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and bool(content) and all(isinstance(each, dict) and "low" in each for each in content.values())


def store_expected(path: Path, new: Mapping[tuple[str, str], Expected]) -> None:
    """Add entries, by comparison and machine, to the file at `path`."""
    known = read_expected(path, required=False)
    comparisons = {key: dict(machines) for key, machines in known.comparisons.items()}
    for (key, machine), entry in new.items():
        comparisons.setdefault(key, {})[machine] = entry
    write_whole(path, document_text(known.model_copy(update={"comparisons": dict(sorted(comparisons.items()))})))


def too_noisy(entry: Expected, band_percent: float) -> str:
    """Why a speedup is too uncertain to be expected from now on, in one sentence; "" if it is not."""
    width, most = entry.speedup.half_width_percent, WIDEST_PERCENT + band_percent
    if width <= most:
        return ""
    return f"{speedup_text(entry.speedup)} is too noisy to be stored: found a half-width of {width:.0f} %, expected at most {most:g} %"


def _spelt(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items()) or "none"
    return ", ".join(value) if isinstance(value, (list, tuple)) else str(value)
