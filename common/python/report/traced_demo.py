"""What the files of all demos that trace a kernel have in common: what ran where, a launch with stamps and one without, and their times."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from common.python.errors import BenchmarkError
from common.python.gate.statistics import Mean, geometric_interval, t_quantile
from common.python.results import SCHEMA_VERSION, Document, Interval

Trace = TypeVar("Trace", bound=Document)

Positive = Annotated[float, Field(gt=0)]


class TracedLaunch(Document):
    """A launch that stamped and one that did not, in us; `step_ns` is what a step of a block took, waits and all."""

    traced_us: Positive
    untraced_us: Positive
    step_ns: Positive


class TracedDemo(Document):
    """One run of a demo on the GPU `gpu`, of the side in the file `side` beside it; the clock moves by `clock_step_ns`."""

    schema_version: Literal[1] = SCHEMA_VERSION
    gpu: str
    driver: str
    date: str
    side: str
    shape: dict[str, int]
    blocks: int
    clock_step_ns: int
    launches: tuple[TracedLaunch, ...]

    @property
    def where(self) -> str:
        """What was traced, on what, and when."""
        shape = ", ".join(f"{name} = {value}" for name, value in self.shape.items())
        return f"{self.side} at {shape} on an {self.gpu}, driver {self.driver}, {self.date}: means of {len(self.launches)} launches"

    @property
    def times(self) -> tuple[Interval, Interval, Interval]:
        """The kernel's time with time stamps and without, both in ns, and the ratio of the two: what stamping costs."""
        traced = geometric_interval([1e3 * launch.traced_us for launch in self.launches])
        untraced = geometric_interval([1e3 * launch.untraced_us for launch in self.launches])
        return traced, untraced, geometric_interval([launch.traced_us / launch.untraced_us for launch in self.launches])

    @property
    def step_ns(self) -> Interval:
        """What a step of a block took, waits and all."""
        return mean_of([launch.step_ns for launch in self.launches])


def mean_of(values: list[float]) -> Interval:
    """The mean of one value a launch, none below 0, with its 95 % interval."""
    mean = Mean.of(values)
    half = t_quantile(mean.degrees, 0.975) * math.sqrt(mean.variance)
    return Interval(estimate=mean.value, low=max(0.0, min(mean.value, mean.value - half)), high=mean.value + half)


def percent_text(share: Interval) -> str:
    """A share with its interval: 39.3 % [39.2, 39.4]."""
    return f"{100 * share.estimate:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def read_trace(path: Path, kind: type[Trace]) -> Trace:
    """The document of `kind` at `path`. Raises BenchmarkError, naming it, for one that is no such document."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}; expected a readable file") from error
    except ValueError as error:  # what is not UTF-8, no JSON, or another document
        raise BenchmarkError(f"{path}: found {str(error).splitlines()[-1].strip()}; expected what the demo beside it writes") from error
