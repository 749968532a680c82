"""Trials of the bars as they are kept, a file a GPU, and what those of several files come to: a row a callable."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from common.python.errors import BenchmarkError
from common.python.report.rows import commit_text
from common.python.results import SCHEMA_VERSION, Document
from common.python.run.noise_trials import PLANTED
from common.python.storage import read_document
from common.python.wording import time_text
from tools.checks.written_tables import NOT_MEASURED, rows

LONG_NS = 30e3
LONG_BAR_PERCENT, SHORT_BAR_PERCENT = 0.4, 1.5  # the most that A/A p95 may be of callables of LONG_NS and more, and of shorter ones
PLANTED_BAR = 0.95  # the least share of planted trials that must be REGRESSED, of long callables
TELLING_BAR = 200  # A/A trials, of which one may be red or green
SECONDS_BAR = 10

COLUMNS = (
    "callable",
    "time",
    "A/A p95",
    "A/A max",
    "`do_bench` A/A p95",
    "planted 1 % REGRESSED",
    "A/A red or green",
    f"seconds (bar {SECONDS_BAR})",
    "GPUs",
)


class Trial(Document):
    """One timing in one fresh run: the gate's word on it ("" where it is never gated), and the raw units it rests on.

    `date` is the day on which it was measured, `commit` the name of the project's then, "" outside a git checkout.
    """

    target: str
    shape: str
    verdict: str
    logs: tuple[float, ...]
    time_ns: float
    seconds: float
    stop_reason: str
    date: str
    commit: str

    @property
    def deviation_percent(self) -> float:
        """|speedup - 1| in percent."""
        return 100 * abs(math.expm1(statistics.fmean(self.logs)))

    @property
    def is_planted(self) -> bool:
        """Whether the optimized side is slower by 1 %."""
        return self.target.endswith(PLANTED)

    @property
    def tells(self) -> bool:
        """Whether the gate says that the sides differ."""
        return self.verdict in ("REGRESSED", "IMPROVED")

    @property
    def name(self) -> str:
        """The callable, whether or not something is planted in it."""
        return callable_name(self.target, self.shape)


class Bars(Document):
    """All trials on one device; `do_bench` holds, by callable, ratios of two successive results of triton.testing.do_bench.

    `device` is the model and `uuid` the very GPU ("" for a CPU); `gate` is the smallest change that counts, in percent.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    device: str
    uuid: str
    driver: str
    torch: str
    gate: float
    trials: tuple[Trial, ...] = ()
    do_bench: dict[str, tuple[float, ...]] = {}

    def rounds_of(self, target: str) -> int:
        """In how many runs `target` was timed."""
        return max(Counter(trial.shape for trial in self.trials if trial.target == target).values(), default=0)


_MODEL = ("device", "driver", "torch", "gate")


def callable_name(target: str, shape: str) -> str:
    """What a person calls a timing: `noise:copy_slower` at `64 MB` is `copy 64 MB`."""
    return f"{target.partition(':')[2].removesuffix(PLANTED)} {'' if shape == 'default' else shape}".strip()


def read_bars(path: Path) -> Bars:
    """The trials in a file that has to be there. Raises BenchmarkError."""
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no such file"
        raise BenchmarkError(f"{path}: found {found}; expected a file in which tools/noise/bars.py keeps trials")
    return read_document(path, Bars)


def expect_same_gpu(path: Path, found: Bars, here: Bars) -> None:
    """Raise BenchmarkError unless the trials of the file at `path` may go on here: on this very GPU, under these conditions."""
    _expect_same(path, found, here, (*_MODEL, "uuid"))


def expect_same_model(path: Path, found: Bars, first: Bars) -> None:
    """Raise BenchmarkError unless the trials of the file at `path` are of the same model and conditions as the first file's."""
    _expect_same(path, found, first, _MODEL)


def _expect_same(path: Path, found: Bars, expected: Bars, names: Sequence[str]) -> None:
    other = [name for name in names if vars(found)[name] != vars(expected)[name]]
    if other:
        theirs, ours = (", ".join(f"{name} {vars(bars)[name]}" for name in other) for bars in (found, expected))
        raise BenchmarkError(f"{path}: found trials of {theirs}; expected those of {ours}, or another file for these")


def by_conditions(files: Iterable[Bars]) -> list[list[Bars]]:
    """The files whose trials make one table, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Bars]] = {}
    for bars in files:
        groups.setdefault(tuple(vars(bars)[name] for name in _MODEL), []).append(bars)
    return list(groups.values())


def table(files: Sequence[Bars]) -> str:
    """What trials of the same conditions come to, in Markdown: a row a callable, and under them what all come to together."""
    trials = [trial for bars in files for trial in bars.trials]
    names = dict.fromkeys([trial.name for trial in trials] + [name for bars in files for name in bars.do_bench])
    return "\n".join([rows(COLUMNS, (_cells(name, files) for name in names)), "", _together(files[0], trials)])


def _cells(name: str, files: Sequence[Bars]) -> tuple[str, ...]:
    trials = [trial for bars in files for trial in bars.trials if trial.name == name]
    same = [trial for trial in trials if not trial.is_planted]
    planted = [trial for trial in trials if trial.is_planted]
    do_bench = [100 * abs(ratio - 1) for bars in files for ratio in bars.do_bench.get(name, ())]
    others = f"{percentile(do_bench):.2f} %" if do_bench else NOT_MEASURED
    gpus = str(len({bars.uuid or bars.device for bars in files if name in bars.do_bench or any(each.name == name for each in bars.trials)}))
    if not same:
        return (name, *(NOT_MEASURED,) * 3, others, *(NOT_MEASURED,) * 3, gpus)
    deviations = [trial.deviation_percent for trial in same]
    time_ns = statistics.median(trial.time_ns for trial in same)
    is_long = time_ns >= LONG_NS
    caught = f"{sum(trial.verdict == 'REGRESSED' for trial in planted)} of {len(planted)}" if planted or is_long else "none planted"
    return (
        name,
        time_text(time_ns),
        f"{percentile(deviations):.2f} % (bar {LONG_BAR_PERCENT if is_long else SHORT_BAR_PERCENT} %)",
        f"{max(deviations):.2f} %",
        others,
        f"{caught} (bar {math.ceil(PLANTED_BAR * len(planted))})" if is_long else caught,
        f"{sum(trial.tells for trial in same)} of {len(same)}",
        f"{statistics.median(trial.seconds for trial in same):.1f}",
        gpus,
    )


def _together(first: Bars, trials: Sequence[Trial]) -> str:
    alike = [trial for trial in trials if not trial.is_planted]
    driver = f", driver {first.driver}" if first.driver else ""
    where = f"{first.device}{driver}, torch {first.torch}, gate {first.gate:g} %"
    told = f"{sum(trial.tells for trial in alike)} of {len(alike)} A/A trials red or green (bar 1 in {TELLING_BAR})"
    return f"{'; '.join([where, *_when(trials)])}: {told}"


def _when(trials: Sequence[Trial]) -> Iterator[str]:
    days, commits = (sorted({part for trial in trials if (part := vars(trial)[name])}) for name in ("date", "commit"))
    if days:
        yield days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    if commits:
        yield f"commit{'s' if len(commits) > 1 else ''} {', '.join(map(commit_text, commits))}"


def percentile(values: Sequence[float], share: float = 0.95) -> float:
    """The value that `share` of `values` do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
