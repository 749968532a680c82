"""What a GPU model is expected to do: `chNN/expectations_<gpu>.json`, measured values with their raw units, never anything else."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from common.python.errors import BenchmarkError
from common.python.gate.statistics import (
    LEAST_UNITS,
    Mean,
    climbed,
    gated_by,
    gated_logs,
    geometric_interval,
    median_ns,
    ratio_interval,
    rungs_timed,
)
from common.python.machine.description import Gpu, Machine
from common.python.pairs.goals import ACCURACY, TIME
from common.python.results import (
    BASELINE,
    OPTIMIZED,
    SCHEMA_VERSION,
    Document,
    Interval,
    PairResult,
    PairTiming,
    ReportedMetric,
    Run,
    Share,
    StopReason,
)
from common.python.storage import document_text, read_document, write_whole

LEAST_ACCEPTED_UNITS = 10
AS_FAST_PERCENT = 3.0  # that a side may be slower whose accuracy counts: the band of a side's own time, its share of the ceiling

Logs = Annotated[tuple[float, ...], Field(min_length=2)]  # one a unit: fewer have no variance


class Provenance(Document):
    """Where an expectation was measured; versions and clocks (MHz) are as the machine told them, "" or None where it did not.

    `dirty`: files differed from the commit. `ceilings` says when the ceilings were measured that the shares are shares of. `device` is the
    very GPU, by its uuid; "" where that was not noted.
    """

    run_id: str
    date: str
    gpu: str
    device: str = ""
    driver: str
    cuda: str
    torch: str
    triton: str
    commit: str
    dirty: bool
    sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    ceilings: str


class SideExpectation(Document):
    """One side: its time, the log of its median ns in each unit, its share of the ceiling, and its peak memory in bytes.

    `figure` is what it has of a goal other than time, in the expectation's `unit`, and `joules` are those of a step, where they were told.
    `counters` are those of a step, where the run that was accepted profiled it at this shape.
    """

    time_ns: Interval
    logs_ns: Logs
    share: Share | None
    peak_memory_bytes: int | None
    figure: Interval | None = None
    joules: Interval | None = None
    counters: dict[str, float] = {}


class RungExpectation(Document):
    """One side of a ladder: how many times better it is than `over`, the one before it.

    What it is gated by is kept as the log of how many times better than the baseline it is, in each unit that the pair's `logs` are of.
    """

    over: str
    ratio: Interval
    logs_over_baseline: Logs

    @property
    def over_baseline(self) -> Interval:
        """How many times better than the baseline it is."""
        return geometric_interval([math.exp(log) for log in self.logs_over_baseline])


class Expectation(Document):
    """One timing: under which conditions, the gated figure, and `logs`, its raw units: the log of each process pair's ratio.

    `ratio` is the speedup, or where the workload's `goal` is another, how many times better the optimized side is at that.
    `figures` are those of served requests, by side, and `saturation_per_s` what their offered load was a share of.
    """

    shape: dict[str, int | float | bool | str]
    goal: str
    clock: Literal["device", "launch", "host"]
    cache: Literal["cold", "hot"]
    ratio: Interval
    logs: Logs
    speedup: Interval
    sides: dict[str, SideExpectation]
    unit: str = ""
    rungs: dict[str, RungExpectation] = {}
    metrics: dict[str, dict[str, ReportedMetric]]
    provenance: Provenance
    figures: dict[str, dict[str, Interval]] = {}
    saturation_per_s: float | None = None

    @model_validator(mode="after")
    def _has_one_log_a_unit(self) -> Self:
        counts = {side: len(rung.logs_over_baseline) for side, rung in self.rungs.items()}
        if other := [f"rung {side} has {count} logs" for side, count in counts.items() if count != len(self.logs)]:
            raise ValueError(f"{other[0]} and the pair {len(self.logs)}; all come from the same units")
        return self

    def means_of(self, rungs: Iterable[str]) -> dict[str, dict[tuple[str, str], Mean]]:
        """The mean log ratios that were accepted for each of `rungs`, by the pair of sides compared. Rungs never accepted are left out."""
        return {side: self._means(side, self.rungs[side].logs_over_baseline) for side in rungs if side in self.rungs}

    def _means(self, side: str, over_baseline: Sequence[float]) -> dict[tuple[str, str], Mean]:
        over_optimized = [log - own for log, own in zip(over_baseline, self.logs, strict=True)]
        return {sides: Mean.of(over_optimized if sides[0] == OPTIMIZED else over_baseline) for sides in gated_by(side)}

    def differs_from(self, conditions: Mapping[str, object]) -> str:
        """What makes a timing under `conditions`, by field, another question than this answers, in words; "" if nothing does."""
        changed = {name: value for name, value in conditions.items() if vars(self)[name] != value}
        return " and ".join(f"{name} {_short(value)} where {_short(vars(self)[name])} was accepted" for name, value in changed.items())


class Expectations(Document):
    """All that is expected of the pairs of one folder on one GPU model: by pair, then by named shape."""

    schema_version: Literal[1] = SCHEMA_VERSION
    gpu: str
    pairs: dict[str, dict[str, Expectation]] = {}


def gpu_key(gpus: Sequence[Gpu]) -> str:
    """The name that expectations of these GPUs, alike in model, are kept under: `h200`, `2xh200`; "" for no GPU.

    The memory of the usual board is left out of its name: an `NVIDIA H100 80GB HBM3` is an `h100`, an `H100 PCIe` another model.
    """
    return key_of_names([gpu.name for gpu in gpus])


def key_of_names(names: Sequence[str]) -> str:
    """As `gpu_key`, of the GPUs' names."""
    if not names:
        return ""
    model = re.sub(r"[^a-z0-9]+", "_", names[0].lower().replace("nvidia", "")).strip("_")
    model = re.sub(r"_\d+gb_hbm\w*$", "", model)
    return f"{len(names)}x{model}" if len(names) > 1 else model


def is_of_several(key: str) -> bool:
    """Whether a key names several GPUs, as that of a row of ranks does."""
    return re.match(r"\d+x", key) is not None


def key_text(key: str) -> str:
    """A key as people write the model: `H200`, `2xH200`."""
    count, times, model = key.rpartition("x") if is_of_several(key) else ("", "", key)
    return f"{count}{times}{model.upper().replace('_', ' ')}"


def expectations_path(folder: Path, key: str) -> Path:
    """The path of the file that keeps the accepted rows of one folder for one GPU model; `key` is as `gpu_key` makes it."""
    return folder / f"expectations_{key}.json"


def read_expectations(path: Path) -> Expectations:
    """What is kept at `path`, nothing where there is no file. Raises BenchmarkError, naming it, for one that is not what its name says."""
    key = path.stem.removeprefix("expectations_")
    if not path.exists():
        return Expectations(gpu=key)
    found = read_document(path, Expectations)
    if found.gpu != key:
        raise BenchmarkError(f"{path}: found gpu {found.gpu}; expected {key}, as in its name")
    return found


def require_readable(folders: Iterable[Path]) -> None:
    """Read the files of all GPU models in `folders`. Raises BenchmarkError, naming it, for the first that is not what its name says."""
    for folder in dict.fromkeys(folders):
        for path in sorted(folder.glob("expectations_*.json")):
            read_expectations(path)


def keep_expectations(path: Path, pair: str, accepted: Mapping[str, Expectation]) -> None:
    """Put what is expected of one pair into the file at `path`, in place of what stood there for its shapes; the rest stays."""
    known = read_expectations(path)
    rows = {**known.pairs.get(pair, {}), **accepted}
    pairs = dict(sorted({**known.pairs, pair: rows}.items()))
    write_whole(path, document_text(known.model_copy(update={"pairs": pairs})))


def refusal(timing: PairTiming, band_percent: float) -> str:
    """Why this timing is too uncertain to be expected from now on, in one sentence; "" if it is not."""
    ratio = ratio_of(timing)
    if timing.stop_reason is StopReason.THROTTLED:
        return "the device throttled; expected a fit environment"
    least = LEAST_UNITS if timing.stop_reason is StopReason.TIME_BUDGET else LEAST_ACCEPTED_UNITS
    if len(timing.units) < least:
        return f"found {len(timing.units)} units; expected at least {least}"
    if ratio is None:
        return f"found no figure for the goal {timing.goal}; expected one on both sides"
    return slower_than_equal(timing) or too_wide(ratio, band_percent)


def slower_than_equal(timing: PairTiming) -> str:
    """For a pair whose goal is accuracy: a sentence if the optimized side is slower than the baseline by more than the band.

    "" if its speed is equal or better, if the speeds are unknown, or if the goal is another.
    """
    speedup = timing.speedups.get(OPTIMIZED)
    if timing.goal != ACCURACY or speedup is None or speedup.estimate * (1 + AS_FAST_PERCENT / 100) >= 1:
        return ""
    longer = 100 * (1 / speedup.estimate - 1)
    return f"found the optimized side {longer:.1f} % slower; expected at most {AS_FAST_PERCENT:g} %, as accuracy is compared at equal speed"


def too_wide(ratio: Interval, band_percent: float) -> str:
    """A sentence if the ratio's interval is too wide to be accepted: a half-width above half of `band_percent`. "" otherwise."""
    if ratio.half_width_percent <= band_percent / 2:
        return ""
    return f"found a half-width of {ratio.half_width_percent:.2f} %; expected at most {band_percent / 2:.2g} %, half of the band"


def ratio_of(timing: PairTiming, side: str = OPTIMIZED) -> Interval | None:
    """How many times better than the baseline a side is: its speedup, or its gain at another goal; None where it has none."""
    return (timing.speedups if timing.goal == TIME else timing.gains).get(side)


def too_wide_rungs(timing: PairTiming, band_percent: float) -> dict[str, str]:
    """Why a rung of this timing is too uncertain to be expected from now on, by its name, if one of its gated ratios is."""
    found: dict[str, str] = {}
    for side in rungs_timed(timing):
        intervals = [ratio_interval(timing.units, timing.goal, sides) for sides in gated_by(side)]
        if whys := [why for interval in intervals if (why := too_wide(interval, band_percent))]:
            found[side] = whys[0]
    return found


def expectation_of(row: PairResult, timing: PairTiming, ratio: Interval, provenance: Provenance) -> Expectation:
    """The expectation to keep when this timing of `row` is accepted; `ratio` is the accepted ratio, `provenance` where it was measured."""
    return Expectation(
        shape=timing.shape,
        goal=timing.goal,
        clock=timing.clock,
        cache=timing.cache,
        ratio=ratio,
        logs=tuple(gated_logs(timing.units, timing.goal)),
        speedup=timing.speedups[OPTIMIZED],
        sides={
            side: SideExpectation(
                time_ns=time,
                logs_ns=tuple(math.log(median_ns(unit, side)) for unit in timing.units),
                share=timing.shares.get(side),
                peak_memory_bytes=row.sides[side].peak_memory_bytes,
                figure=timing.figures.get(side),
                joules=timing.joules.get(side),
                counters=_counters(row, timing, side),
            )
            for side, time in timing.time_ns.items()
        },
        unit=timing.unit,
        rungs={
            after: RungExpectation(
                over=before,
                ratio=timing.rungs[after],
                logs_over_baseline=tuple(gated_logs(timing.units, timing.goal, (BASELINE, after))),
            )
            for before, after in climbed(timing)
        },
        metrics=row.metrics,
        provenance=provenance,
        figures=timing.serving.figures if timing.serving else {},
        saturation_per_s=timing.serving.saturation_per_s if timing.serving else None,
    )


def _counters(row: PairResult, timing: PairTiming, side: str) -> dict[str, float]:
    profile = row.sides[side].profile
    is_profiled = timing is next(iter(row.timings.values()))  # a row is profiled at the first of its shapes
    return profile.counters if profile and is_profiled else {}


def provenance_of(run: Run, machine: Machine, timing: PairTiming) -> Provenance:
    """Where `timing` comes from."""
    source, seen = machine.root, timing.telemetry
    return Provenance(
        run_id=run.run_id,
        date=run.started,
        gpu=machine.gpus[0].name,
        device=machine.gpus[0].uuid,
        driver=machine.gpus[0].driver,
        cuda=machine.cuda_driver,
        torch=machine.packages.get("torch", ""),
        triton=machine.packages.get("triton", ""),
        commit=source.commit if source else "",
        dirty=source.dirty if source else False,
        sm_clock_mhz=seen.sm_clock_mhz.median if seen.sm_clock_mhz else None,
        memory_clock_mhz=seen.memory_clock_mhz.median if seen.memory_clock_mhz else None,
        ceilings=str(run.ceilings[timing.device]["measured"]) if timing.device in run.ceilings else "",
    )


def _short(value: object) -> str:
    return " ".join(f"{key}={entry}" for key, entry in value.items()) if isinstance(value, Mapping) else str(value)
