"""Everything a user can choose, in one frozen value that is saved whole with the result."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from common.python.project import default_root

BASE_TIMEOUTS_S = {"build": 300.0, "prepare": 240.0, "measure": 120.0, "profile": 180.0}


class Device(StrEnum):
    """Where sides run; `auto` takes the GPU where there is one that torch can use."""

    AUTO = "auto"
    CUDA = "cuda"
    CPU = "cpu"


class Profile(StrEnum):
    """How much is profiled after timing; also the names of ncu's metric presets."""

    NONE = "none"
    MINIMAL = "minimal"
    ROOFLINE = "roofline"
    DEEP_DIVE = "deep_dive"


class Settings(BaseModel):
    """The choices of one run. A CLI flag is one of these fields; times are in seconds, `gate` in percent.

    `profile` None is nobody's choice: nothing is profiled but a row that is red twice, and with NONE not even that. `sanitize` has
    compute-sanitizer's tools, in the order that they run in. `seed` None: the run draws one, which run.json records. `ranks` None: as many
    processes a side as the workload can run in and the machine has GPUs for. `llm_tokens` is the most of a prompt. For `wait` a run waits
    for another that has the machine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str = "run"
    targets: tuple[str, ...] = ()
    root: Path = Field(default_factory=default_root)
    device: Device = Device.AUTO
    profile: Profile | None = None
    ncu_metric_set: Profile | None = None
    accept_regressions: bool = False
    cold_start: bool = False
    iterations: int | None = None
    warmup: int | None = None
    repeat: int = 1
    kwargs: dict[str, str] = {}
    timeout_multiplier: float = 1.0
    suite_timeout: float | None = None
    artifacts_dir: Path | None = None
    llm_analysis: bool = False
    llm_dry_run: bool = False
    llm_tokens: int = 60_000
    json_output: bool = False
    resume: bool = False
    dry_run: bool = False
    sweep: dict[str, tuple[str, ...]] = {}
    against: str | None = None
    changed_since: str | None = None
    sustained: bool = False
    sanitize: tuple[str, ...] = ()
    gate: float = 0.5
    require_expectations: bool = False
    fail_on: str | None = None
    seed: int | None = None
    ranks: int | None = None
    verbose: bool = False
    wait: float = 0.0
    emulate: bool = False

    def timeout_s(self, phase: str) -> float:
        """Seconds that `phase` (build, prepare, measure, profile) may take."""
        return BASE_TIMEOUTS_S[phase] * self.timeout_multiplier

    @property
    def profiles(self) -> bool:
        """Whether every row is profiled after its timing."""
        return self.profile not in (None, Profile.NONE)

    @property
    def measures(self) -> bool:
        """False for `verify`, which checks and proves but does not time."""
        return self.command != "verify"
