"""What a machine can do at most, as `peak` measured it: the documents that are kept, and that results are held against."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from common.python.results import SCHEMA_VERSION, Document, Interval

Unit = Literal["bytes/s", "flop/s", "s"]
Mode = Literal["burst", "sustained"]
L2State = Literal["clean", "dirty", "hot", "none"]


class Ceiling(Document):
    """What a machine can do at most, by one measure of `peak`: the median of `samples` samples and its 95 % interval.

    `l2` is the state of the L2 before each sample: clean is the state in which sides are timed; none where it plays no part.
    `sm_clock_hz` is the clock that the SMs held; None where none was stamped. `how` names the variant kept.
    """

    name: str
    value: Interval
    unit: Unit
    mode: Mode
    l2: L2State
    samples: int
    sm_clock_hz: float | None
    how: str

    @model_validator(mode="after")
    def _is_positive(self) -> Self:
        if self.value.low <= 0:
            raise ValueError(f"ceiling {self.name} of {self.value.estimate} {self.unit}; a ceiling is positive")
        return self


class MachineCeilings(Document):
    """The ceilings of one GPU, or of one core of a CPU: artifacts/machines/<machine>.json.

    `cache_bytes` is the size of the L2, or of a CPU's last cache. Clocks (MHz) and power (W) are the limits they were measured under;
    `missing` says of every ceiling that was not measured why.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    machine: str
    name: str
    device: Literal["cuda", "cpu"]
    driver: str
    torch: str
    measured: str
    seconds: float
    sm_clock_max_mhz: int | None
    memory_clock_max_mhz: int | None
    power_limit_w: float | None
    cache_bytes: int
    ceilings: tuple[Ceiling, ...]
    missing: dict[str, str]
    notes: tuple[str, ...] = ()
