"""Sweeps that are kept in a pair's folder: requests by load, `loads_<gpu>.json`, and times by another entry, `sweeps_<gpu>.json`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field

from common.python.errors import BenchmarkError
from common.python.gate.expectations import key_of_names
from common.python.pairs.predictions import calculate, card_for
from common.python.pairs.serving import LOAD
from common.python.results import (
    BASELINE,
    OPTIMIZED,
    SCHEMA_VERSION,
    Document,
    Interval,
    Origin,
    PairResult,
    PairTiming,
    ServingFigures,
    Share,
)
from common.python.storage import read_document

TTFT, TTFT_TAIL, TPOT, ITL_TAIL, GOODPUT = "ttft_ms.p50", "ttft_ms.p95", "tpot_ms.p50", "itl_ms.p95", "goodput"
FIGURES = (TTFT, TTFT_TAIL, TPOT, ITL_TAIL, "output_tokens_per_s", "requests_per_s", GOODPUT)

Entry = int | float | bool | str


class Record(Document):
    """What every kept sweep has: the shape but for what was swept, and an origin for each run."""

    shape: dict[str, Entry]
    origins: tuple[Origin, ...] = Field(min_length=1)

    @property
    def gpu(self) -> str:
        """The name of the GPU that made it, of several the first."""
        return self.origins[0].gpus[0].rpartition(" ")[0]

    @property
    def key(self) -> str:
        """The key of the GPU model that made it, with the number of GPUs where those are several."""
        return key_of_names([gpu.rpartition(" ")[0] for gpu in self.origins[0].gpus])

    def alike(self) -> Iterator[tuple[str, object]]:
        """What runs of one record have in common, in words."""
        origin = self.origins[0]
        yield "its GPU", self.key
        yield "its shape", " ".join(f"{key}={value}" for key, value in self.shape.items())
        yield "its commit", f"{origin.commit[:10]}{' with changes' if origin.dirty else ''}"
        yield "its driver", origin.driver
        yield "its torch", origin.torch

    def require_alike(self, other: Record) -> None:
        """Raise BenchmarkError, without the file's name, where more than what was swept differs."""
        for (what, one), (_, its) in zip(self.alike(), other.alike(), strict=True):
            if one != its:
                raise BenchmarkError(f"{what} is {its}; expected {one}, as in the run before it")


class ServedLoad(Document):
    """What each side's requests saw at one load, a share of saturation: figures by side, over process pairs."""

    load: float = Field(gt=0)
    offered_per_s: float
    saturation_per_s: float
    process_pairs: int
    sides: dict[str, dict[str, Interval]]


class LoadSweep(Record):
    """A pair's loads, rising, at one shape, with the service level that goodput counts against."""

    slo_ttft_ms: float
    slo_tpot_ms: float
    loads: tuple[ServedLoad, ...] = Field(min_length=1)

    def alike(self) -> Iterator[tuple[str, object]]:
        """As a record's, and the service level."""
        yield from super().alike()
        yield "its service level", f"{self.slo_ttft_ms:g} and {self.slo_tpot_ms:g} ms"

    def joined(self, other: LoadSweep) -> LoadSweep:
        """Both as one. Raises BenchmarkError, without the file's name, where they are no two parts of one sweep."""
        self.require_alike(other)
        _require_apart(LOAD, (each.load for each in self.loads), (each.load for each in other.loads))
        loads = tuple(sorted((*self.loads, *other.loads), key=lambda each: each.load))
        return self.model_copy(update={"loads": loads, "origins": (*self.origins, *other.origins)})


class SweptSide(Document):
    """One side at one value: its time, its speedup over the baseline, and its share of a ceiling. `figure` and `gain` are of the goal."""

    time_ns: Interval
    speedup: Interval | None = None
    share: Share | None = None
    figure: Interval | None = None
    gain: Interval | None = None


class OwnConstant(Document):
    """A constant of equations as `peak` measured it on the machine of a run, not on the card's."""

    value: float = Field(gt=0)
    unit: str


class SweptValue(Document):
    """All sides at one value of the swept entry. `own` are constants of `hidden` that go before the card's, by name."""

    value: Entry
    process_pairs: int
    sides: dict[str, SweptSide]
    own: dict[str, OwnConstant] = {}


class TimeSweep(Record):
    """A pair's times at several values of one entry of its shape, rising where those are numbers.

    Another `goal` than time has its `unit`. `hidden` is an equation in seconds, as of a `predicts:` line, of what the optimized side hides
    behind other work; "" where nobody asked what share of it is hidden. Its constants are those of a value's `own`, or of the model's card.
    """

    entry: str
    clock: str
    cache: str
    mode: str
    goal: str
    unit: str = ""
    hidden: str = ""
    values: tuple[SweptValue, ...] = Field(min_length=1)

    def alike(self) -> Iterator[tuple[str, object]]:
        """As a record's, and how it was timed."""
        yield from super().alike()
        yield "its mode", f"{self.mode}, clock {self.clock}, caches {self.cache}, goal {self.goal}"

    def joined(self, other: TimeSweep) -> TimeSweep:
        """Both as one. Raises BenchmarkError, without the file's name, where they are no two parts of one sweep."""
        self.require_alike(other)
        _require_apart(self.entry, (each.value for each in self.values), (each.value for each in other.values))
        return self.model_copy(update={"values": _rising((*self.values, *other.values)), "origins": (*self.origins, *other.origins)})

    def shape_at(self, value: Entry) -> dict[str, object]:
        """The whole shape at one value."""
        return {**self.shape, self.entry: value}

    def hidden_share(self, at: SweptValue, side: str) -> Interval | None:
        """The time that `side` saves over the baseline as a share of `hidden`; the interval is that of the speedup. None without `hidden`.

        Raises BenchmarkError for an equation that the GPU's card and the shape do not fill.
        """
        speedup = at.sides[side].speedup
        if not (self.hidden and speedup):
            return None
        own = {name: constant.value for name, constant in at.own.items()}
        whole_ns = 1e9 * calculate(self.hidden, own | self.shape_at(at.value), card_for(self.gpu))
        if not whole_ns:
            raise BenchmarkError(f"found `{self.hidden}`, which is 0 s at {self.entry}={at.value}; expected a time above 0")
        baseline_ns = at.sides[BASELINE].time_ns.estimate
        low, middle, high = (baseline_ns * (1 - 1 / ratio) / whole_ns for ratio in (speedup.low, speedup.estimate, speedup.high))
        return Interval(estimate=middle, low=low, high=high)


class Loads(Document):
    """`chNN/loads_<gpu>.json`: by name the pairs of one folder whose loads were measured on one GPU model."""

    schema_version: Literal[1] = SCHEMA_VERSION
    gpu: str
    pairs: dict[str, LoadSweep] = {}


class Sweeps(Document):
    """`chNN/sweeps_<gpu>.json`: by name the pairs of one folder, and by entry what was swept of each on one GPU model."""

    schema_version: Literal[1] = SCHEMA_VERSION
    gpu: str
    pairs: dict[str, dict[str, TimeSweep]] = {}


_NAMES: Mapping[type[Document], str] = {Loads: "loads", Sweeps: "sweeps"}
_File = TypeVar("_File", Loads, Sweeps)


def kept_path(folder: Path, kind: type[Loads] | type[Sweeps], key: str) -> Path:
    """The file of one folder and GPU model; `key` is as `gpu_key` makes it."""
    return folder / f"{_NAMES[kind]}_{key}.json"


def read_kept(path: Path, kind: type[_File]) -> _File:
    """The file at `path`. Raises BenchmarkError, naming it, for what is none, or another model's."""
    found = read_document(path, kind)
    if path != (expected := kept_path(path.parent, kind, found.gpu)):
        raise BenchmarkError(f"{path}: found {_NAMES[kind]} of {found.gpu!r}; expected the file's name to be {expected.name}")
    return found


def kept_in(folder: Path, kind: type[_File]) -> list[_File]:
    """All files of one kind in `folder`, a GPU model each. Raises BenchmarkError, naming the file that is none."""
    return [read_kept(path, kind) for path in sorted(folder.glob(f"{_NAMES[kind]}_*.json"))]


def sweep_of(row: PairResult) -> LoadSweep | TimeSweep:
    """What one row swept. Raises BenchmarkError, without the file's name, for a row that swept nothing, or is not of a GPU."""
    entry, timings = _entry_of(row), list(row.timings.values())
    by_load = any(timing.serving for timing in timings) and entry in ("", LOAD)
    if not by_load and not entry:
        raise BenchmarkError("found no swept entry; expected a run with --sweep, as in --sweep n=1024,4096")
    if not (row.origin and row.origin.gpus and all(timing.device == "cuda" for timing in timings)):
        raise BenchmarkError(f"found a row that no GPU made; expected {'loads' if by_load else 'times'} of a GPU")
    return _loads_of(timings, row.origin) if by_load else _times_of(entry, timings, row.origin)


def _entry_of(row: PairResult) -> str:
    """The entry that `--sweep` named: its timings are called `entry=value`; "" where nothing was swept."""
    found = {name.partition("=")[0] if "=" in name else "" for name in row.timings}
    entry = found.pop() if len(found) == 1 else ""
    return entry if all(entry in timing.shape for timing in row.timings.values()) else ""


def _loads_of(timings: Iterable[PairTiming], origin: Origin) -> LoadSweep:
    served = [(timing, timing.serving) for timing in timings if timing.serving]
    loads = [load for timing, serving in served if (load := _load_of(timing, serving))]
    if not loads:
        raise BenchmarkError(f"found no requests at a share of saturation; expected a run with --sweep {LOAD}=0.5,0.8")
    timing, serving = served[0]
    return LoadSweep(
        shape={key: value for key, value in timing.shape.items() if key != LOAD},
        origins=(origin,),
        slo_ttft_ms=serving.slo_ttft_ms,
        slo_tpot_ms=serving.slo_tpot_ms,
        loads=tuple(sorted(loads, key=lambda each: each.load)),
    )


def _load_of(timing: PairTiming, serving: ServingFigures) -> ServedLoad | None:
    """What `timing` says of its load; None where all requests come at once, or at a rate that is no share of saturation."""
    if not (serving.offered_per_s and serving.saturation_per_s):
        return None
    return ServedLoad(
        load=round(serving.offered_per_s / serving.saturation_per_s, 6),
        offered_per_s=serving.offered_per_s,
        saturation_per_s=serving.saturation_per_s,
        process_pairs=len(timing.units),
        sides={side: {name: own[name] for name in FIGURES if name in own} for side, own in serving.figures.items()},
    )


def _times_of(entry: str, timings: list[PairTiming], origin: Origin) -> TimeSweep:
    if missing := [side for side in (BASELINE, OPTIMIZED) if any(side not in timing.time_ns for timing in timings)]:
        raise BenchmarkError(f"found no {missing[0]} side; expected a sweep of a whole pair")
    first = timings[0]
    return TimeSweep(
        shape={key: value for key, value in first.shape.items() if key != entry},
        origins=(origin,),
        entry=entry,
        clock=first.clock,
        cache=first.cache,
        mode=first.mode,
        goal=first.goal,
        unit=first.unit,
        values=_rising(SweptValue(value=timing.shape[entry], process_pairs=len(timing.units), sides=_sides(timing)) for timing in timings),
    )


def _sides(timing: PairTiming) -> dict[str, SweptSide]:
    return {
        side: SweptSide(
            time_ns=time,
            speedup=timing.speedups.get(side),
            share=timing.shares.get(side),
            figure=timing.figures.get(side),
            gain=timing.gains.get(side),
        )
        for side, time in timing.time_ns.items()
    }


def _rising(values: Iterable[SweptValue]) -> tuple[SweptValue, ...]:
    """In order where all are numbers, else as they came."""
    found = tuple(values)
    return found if any(isinstance(each.value, str) for each in found) else tuple(sorted(found, key=lambda each: float(each.value)))


def _require_apart(entry: str, first: Iterable[Hashable], second: Iterable[Hashable]) -> None:
    known = set(first)
    if both := [value for value in second if value in known]:
        raise BenchmarkError(f"{entry}={both[0]} is in the run before it too; expected each value once")
