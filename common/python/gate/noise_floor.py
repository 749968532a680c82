"""A machine's noise floor: how far the two sides of a pair that are the same code differ here, by class of step."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import PositiveInt

from common.python.gate.statistics import LOOK_CONFIDENCE, MOST_UNITS, Known, gated_logs, shortest_ns, t_quantile
from common.python.machine.ceilings import MACHINES
from common.python.pairs.goals import TIME
from common.python.results import SCHEMA_VERSION, Document, PairTiming, Unit
from common.python.storage import document_text, read_document, write_whole

SHARE: Final = 0.95  # of the trials that lie within the floor
ENOUGH: Final = 20  # of them to have a 95th percentile


class StepClass(StrEnum):
    """Steps whose noise is alike: by length under the device's clock, by clock where that is another."""

    SHORT = "under 10 µs"
    MIDDLE = "10 to 30 µs"
    LONG = "30 µs and more"
    LAUNCH = "launch clock"
    HOST = "host clock"
    SETUP = "set-up"
    SERVING = "serving"


def class_of(clock: Literal["device", "launch", "host"], shortest_ns: float) -> StepClass:
    """The class of a pair timed by `clock` whose faster side takes `shortest_ns`."""
    if clock != "device":
        return StepClass.LAUNCH if clock == "launch" else StepClass.HOST
    if shortest_ns < 10e3:
        return StepClass.SHORT
    return StepClass.MIDDLE if shortest_ns < 30e3 else StepClass.LONG


def class_of_units(clock: Literal["device", "launch", "host"], units: Sequence[Unit]) -> StepClass:
    """The class of a pair timed by `clock` in `units`."""
    return class_of(clock, shortest_ns(units))


class Trial(Document):
    """One measurement of a pair whose sides are the same code: the log of each unit's ratio."""

    target: str
    logs: tuple[float, ...]

    @property
    def deviation_percent(self) -> float:
        """|speedup - 1| in percent."""
        return 100 * abs(math.expm1(statistics.fmean(self.logs)))


class Floor(Document):
    """One class: `percent` is the 95th percentile of |speedup - 1| over trials; `deviation` is that of a unit's log ratio."""

    percent: float
    deviation: float
    degrees: PositiveInt
    trials: tuple[Trial, ...]

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Self:
        """The floor that these trials show.

        Fewer than 20 have no 95th percentile of their own: it is what Student's t makes of how far their units are from each other, or
        their largest deviation, if that is more.
        """
        deviations = sorted(trial.deviation_percent for trial in trials)
        degrees = sum(len(trial.logs) - 1 for trial in trials)
        squares = sum(statistics.variance(trial.logs) * (len(trial.logs) - 1) for trial in trials)
        deviation = math.sqrt(squares / degrees)
        percent = deviations[math.ceil(SHARE * len(deviations)) - 1]
        if len(trials) < ENOUGH:
            fewest = min(len(trial.logs) for trial in trials)
            percent = max(percent, 100 * math.expm1(t_quantile(degrees, (1 + SHARE) / 2) * deviation / math.sqrt(fewest)))
        return cls(percent=percent, deviation=deviation, degrees=degrees, trials=tuple(trials))

    def visible_percent(self, gate_percent: float) -> float:
        """The smallest change in percent that the gate detects for certain, with the most units that a row may have.

        That is the band, `gate_percent` or the floor if larger, plus the half-width of a comparison of so many units with as many.
        """
        half_width = t_quantile(2 * MOST_UNITS - 2, 0.5 + LOOK_CONFIDENCE / 2) * self.deviation * math.sqrt(2 / MOST_UNITS)
        return max(gate_percent, self.percent) + 100 * math.expm1(half_width)


class NoiseFloor(Document):
    """What A/A trials showed on one machine, and when."""

    schema_version: Literal[1] = SCHEMA_VERSION
    device: str
    driver: str
    measured: str
    floors: dict[StepClass, Floor]


@dataclass(frozen=True)
class Noise:
    """The floors of a machine as the gate uses them; a class that nobody measured has none."""

    floors: Mapping[StepClass, Floor]

    def band_percent(self, gate_percent: float, step: StepClass) -> float:
        """The change that counts as none: the gate's, or the floor of the class where that is higher."""
        return max(gate_percent, self.floors[step].percent) if step in self.floors else gate_percent

    def known(self, step: StepClass) -> Known | None:
        """The deviation between process pairs that was measured for steps of this class."""
        floor = self.floors.get(step)
        return Known(floor.deviation, floor.degrees) if floor else None

    @property
    def percent(self) -> dict[str, float]:
        """The floors, in percent, by class."""
        return {str(step): floor.percent for step, floor in self.floors.items()}


def floors_of(timings: Iterable[tuple[str, PairTiming]]) -> dict[StepClass, Floor]:
    """Floors from timings of pairs whose sides are the same code, each with its target."""
    trials: dict[StepClass, list[Trial]] = {}
    for target, timing in timings:
        trial = Trial(target=target, logs=tuple(gated_logs(timing.units, TIME)))
        trials.setdefault(class_of_units(timing.clock, timing.units), []).append(trial)
    return {step: Floor.of(trials[step]) for step in StepClass if step in trials}


def noise_path(machine: str, folder: Path = MACHINES) -> Path:
    """Where the floor of a machine is kept, beside its ceilings."""
    return folder / f"{machine}.noise.json"


def read_noise(path: Path) -> Noise:
    """The floors kept at `path`; none where there is no such file. Raises BenchmarkError for a file that is not one."""
    return Noise(read_document(path, NoiseFloor).floors if path.exists() else {})


def keep_noise(path: Path, floor: NoiseFloor) -> None:
    """Keep `floor` at `path`, in place of what was there."""
    write_whole(path, document_text(floor))


def sentences(floor: NoiseFloor, gate_percent: float) -> list[str]:
    """What was found, a sentence a class: the floor, and the smallest change that a gate here sees."""
    found = []
    for step, measured in floor.floors.items():
        units = sum(len(trial.logs) for trial in measured.trials)
        how = (
            f"in {len(measured.trials)} trials"
            if len(measured.trials) >= ENOUGH
            else f"as the {units} units of {len(measured.trials)} tell"
        )
        seen = measured.visible_percent(gate_percent)
        found.append(
            f"{step}: on this machine a gate of {gate_percent:g} % sees changes of {seen:.1f} % and more; {SHARE:.0%} of the times two "
            f"sides of the same code differ by {measured.percent:.2f} % at the most, {how}"
        )
    return found
