"""The documents a run leaves, with the rules that make an illegal state impossible to write down."""

from __future__ import annotations

import statistics
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from common.python.errors import Status

SCHEMA_VERSION: Final = 1
BASELINE = "baseline"
OPTIMIZED = "optimized"
WARM_FILES: Final = "input files stayed in the page cache: their reads are warm"  # noted on times of reads that storage did not answer
LONGEST_NS: Final = 1e18  # of a sample: 32 years

FileName = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class Document(BaseModel):
    """Base of everything written: frozen, and a key it does not know is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="strings", allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )


class Interval(Document):
    """An estimate with its 95 % confidence interval, in the unit of its field."""

    estimate: float
    low: float
    high: float

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        if not self.low <= self.estimate <= self.high:
            raise ValueError(f"estimate {self.estimate} with interval [{self.low}, {self.high}]; an interval holds its estimate")
        return self

    @property
    def half_width_percent(self) -> float:
        """Half the interval's width in percent of the estimate."""
        return 50.0 * (self.high - self.low) / self.estimate


class Spread(Document):
    """One quantity over a window, in the unit of its field."""

    minimum: float
    median: float
    mean: float
    maximum: float


class Energy(Document):
    """What the GPUs drew in all over `seconds` of a window, in joules, by their own counters; idle time included."""

    joules: float
    seconds: float


class TelemetrySummary(Document):
    """What the GPUs did in a window of `samples` readings, each of one GPU.

    A quantity that no GPU reported is None, and so is `energy` where a counter did not cover a second or more.
    `reasons` and `throttled_share` are shares of the readings that told a reason.
    """

    samples: int = 0
    sm_clock_mhz: Spread | None = None
    memory_clock_mhz: Spread | None = None
    power_w: Spread | None = None
    temperature_c: Spread | None = None
    reasons: dict[str, float] = {}
    throttled_share: float = 0.0
    energy: Energy | None = None

    @property
    def throttled(self) -> bool:
        """Whether heat or a hardware slowdown held a clock down at any reading."""
        return self.throttled_share > 0


class ServedRequest(Document):
    """One request of a trace: when it was due and when each of its tokens could be read, in us from the trace's begin."""

    due_us: int
    prompt_tokens: int
    tokens_us: tuple[int, ...]


class Block(Document):
    """Samples of one side in a row, in ns a call; `seed` replays the inputs of call i as seed + i.

    `sm_clock_hz` is the clock that the SMs held in each sample, on a GPU; `void` counts samples that had to be taken again. `watts` is the
    mean power of the GPUs over a sustained block, None where they do not tell. Where the block served a trace, `requests` are the trace's,
    and its one sample is the time from its begin to its last token.
    """

    seed: int
    samples_ns: tuple[float, ...]
    sm_clock_hz: tuple[float, ...] = ()
    void: int = 0
    requests: tuple[ServedRequest, ...] = ()
    watts: float | None = None


class Unit(Document):
    """One fresh process a side, timed in alternating blocks; `order` names the sides in the order they ran.

    Where the workload's goal is not time, `figures` has each side's own, in the goal's unit, and `gains` how many times better than the
    baseline's it is. `joules` are those of a step of each side, where it ran for a continuous second or more and its GPUs tell.
    """

    order: tuple[str, ...]
    blocks: dict[str, tuple[Block, ...]]
    gains: dict[str, float] = {}
    figures: dict[str, float] = {}
    joules: dict[str, float] = {}


class StopReason(StrEnum):
    """Why no further unit was measured."""

    DECIDED = "decided"
    PRECISE = "precise"
    UNIT_CAP = "unit_cap"
    TIME_BUDGET = "time_budget"
    THROTTLED = "throttled"
    FIXED = "fixed"


class Share(Document):
    """How near a side comes to the machine's ceiling in `key`, of all keys of the work the one it is nearest to; 1.0 is the ceiling.

    `ceiling_ns` is the time of the work at that ceiling; `floor_ns`, which grants what a cache may have kept, no implementation can
    beat. `at_held_clock` is the share of the ceiling at the clock that the side's own samples held, where the ceiling goes with it.
    """

    key: str
    share: float
    ceiling_ns: float
    floor_ns: float
    at_held_clock: float | None


class ServingFigures(Document):
    """What requests saw: figures by side, in the units of their names, over process pairs.

    The service level is that of goodput. `saturation_per_s` is the baseline's closed-loop throughput in requests/s that offered loads are
    shares of; None where none is.
    """

    slo_ttft_ms: float
    slo_tpot_ms: float
    figures: dict[str, dict[str, Interval]]
    offered_per_s: float | None = None
    saturation_per_s: float | None = None


class PairTiming(Document):
    """The timing of one named shape. `speedups` holds a side's speedup over the baseline; a half has none.

    By side: `figures` in `unit`, what it has of another `goal` than time, and `gains`, which are `speedups` for that goal; `joules` of a
    step, where it was timed sustained and its GPUs tell; `shares` of the ceiling where this machine's are kept; and `rungs`:
    how many times better at it a side of a ladder is than the one before; `calls_per_sample`, more than 1 of a short step. By key: `work`,
    the least that any side must do, and its time, `ceiling_ns`. Samples use `buffer_sets`. Units took `seconds`, but for `prepare`.
    Where requests were served, `serving` has their figures.
    `places` has the inputs and outputs that lie in the host's memory, and `numa_nodes` those of the cores that allocated it, if known.
    A side ran in `ranks` processes.
    """

    shape: dict[str, int | float | bool | str]
    device: Literal["cuda", "cpu"]
    clock: Literal["device", "launch", "host"]
    cache: Literal["cold", "hot"]
    mode: Literal["burst", "sustained", "cold_start"]
    interleaved: bool = True
    launch_latency_hidden: bool
    calls_per_sample: dict[str, int] = {}
    buffer_sets: int = 1
    places: dict[str, Literal["device", "pinned", "pageable"]] = {}
    numa_nodes: tuple[int, ...] = ()
    units: tuple[Unit, ...]
    time_ns: dict[str, Interval]
    speedups: dict[str, Interval]
    stop_reason: StopReason
    goal: str = "time"
    gains: dict[str, Interval] = {}
    figures: dict[str, Interval] = {}
    unit: str = ""
    joules: dict[str, Interval] = {}
    rungs: dict[str, Interval] = {}
    shares: dict[str, Share] = {}
    work: dict[str, float] = {}
    ceiling_ns: dict[str, float] = {}
    repeats: dict[str, tuple[Interval, ...]] = {}
    seconds: float = 0.0
    telemetry: TelemetrySummary = TelemetrySummary()
    notes: tuple[str, ...] = ()
    ranks: int = 1
    serving: ServingFigures | None = None

    @model_validator(mode="after")
    def _is_legal(self) -> Self:
        if (ratios := {*self.speedups, *self.rungs}) and (BASELINE in ratios or not {BASELINE, *ratios} <= self.time_ns.keys()):
            raise ValueError(f"speedups of {sorted(ratios)}, times of {sorted(self.time_ns)}; a speedup needs both times")
        if any(time.low <= 0 for time in self.time_ns.values()):
            raise ValueError(f"times of {sorted(self.time_ns)} reach zero or less; a time is positive")
        if not self.units or any(self.time_ns.keys() - unit.blocks.keys() for unit in self.units):
            raise ValueError(f"times of {sorted(self.time_ns)} without samples of each in every unit; a time comes from its samples")
        if any(ratio.estimate <= 0 for ratio in (*self.speedups.values(), *self.gains.values(), *self.rungs.values())):
            raise ValueError("a speedup of zero or less; a ratio of two times is positive")
        for side in self.time_ns:
            for unit in self.units:
                samples = [sample for block in unit.blocks[side] for sample in block.samples_ns]
                if not samples or statistics.median(samples) <= 0 or max(samples) > LONGEST_NS:
                    raise ValueError(f"samples of {side} that no clock tells; a unit has some, in ns, positive and at most {LONGEST_NS:g}")
        return self


class OutputError(Document):
    """How far one output is from the reference; `mismatched` is the share of elements outside the tolerance.

    `rms_rel` is the root mean square error over the reference's root mean square; None where the reference is 0 everywhere, or was
    compared before this was told. `rows_checked` is how many of its rows, picked at random, were compared; None: all.
    """

    max_abs: float
    max_rel: float
    mismatched: float
    rows_checked: int | None = None
    rms_rel: float | None = None


class Check(Document):
    """One call that was compared with the reference: at which shape and seed, and how far off each output was."""

    shape: dict[str, int | float | bool | str]
    seed: int
    timed_call: bool
    outputs: dict[str, OutputError]


class Proof(Document):
    """One claim of a side's `proves:` or `has:` line and whether it holds."""

    side: str
    claim: str
    state: Literal["proven", "failed", "unchecked"]
    detail: str


class KernelUse(Document):
    """What one kernel takes on one architecture (`90a`): registers of a thread, bytes of them that spill, shared memory of a block.

    `launches` are those of one step, `occupancy_percent` what a trace estimates that they achieved; None where no step was seen.
    """

    name: str
    architecture: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    launches: int | None = None
    occupancy_percent: float | None = None


class Setup(Document):
    """What a side costs before its first answer, in seconds; `cached` says the build was reused."""

    build_s: float = 0.0
    cached: bool = False
    load_s: float
    prepare_s: float
    first_call_s: float


class StepTrace(Document):
    """What one step did while `source` traced it: host calls that start work, kernels, copies; times in ns. Tracing slows the host.

    `span_ns` is from the first work on a GPU to its last, `busy_ns` the part of it in which some ran, `overlap_share` the part of the
    shorter of copies and kernels in which both ran, None without both.
    """

    source: Literal["nsys", "torch.profiler"]
    launches: int
    kernels: int
    copies: int
    host_ns: float
    span_ns: float
    busy_ns: float
    overlap_share: float | None = None


class SideProfile(Document):
    """What profilers told of one step of a side, which is not timed: ncu's counters by its names, in ns, bytes and percent.

    Those of a kernel, in `kernels`, are over all its launches, `counters` over the whole step: a sum is summed, others are averaged.
    """

    step: StepTrace | None = None
    kernels: dict[str, dict[str, float]] = {}
    counters: dict[str, float] = {}


class SideResult(Document):
    """What is known of one side: where it is, what it cost, how right it was. Peak memory is in bytes.

    `imports` are, with --against, files of the project that it imported and that are not what they are for the other side.
    """

    file: FileName
    imports: tuple[FileName, ...] = ()
    directives: dict[str, str] = {}
    setup: Setup | None = None
    peak_memory_bytes: int | None = None
    kernels: tuple[KernelUse, ...] = ()
    profile: SideProfile | None = None
    checks: tuple[Check, ...] = ()


class ReportedMetric(Document):
    """A figure that the workload computes itself: shown, and labelled self-reported."""

    value: float
    unit: str
    better: Literal["higher", "lower", "neither"]
    self_reported: bool = True


class CompilerFinding(Document):
    """Something that torch.compile did to a side without failing, which makes it slow: how often, and the first time in words."""

    kind: Literal["broken", "left", "again", "limit", "untuned"]
    count: int
    first: str


class VerdictKind(StrEnum):
    """What the gate says of a figure, or of a row."""

    SAME = "SAME"
    IMPROVED = "IMPROVED"
    REGRESSED = "REGRESSED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NEW = "NEW"
    UNGATED = "UNGATED"  # of two runs that were compared: both have the figure, and it is not gated


class Change(Document):
    """One figure against what was expected of it: its change and the band that counts as none, in percent; more is better.

    The interval of `percent` is that of one look at the data, 99 %: the gate looks several times, and all its looks together keep 95 %.
    `p_worse` is how likely a change this bad would be if the figure were worse by no more than the band.
    """

    kind: VerdictKind
    percent: Interval
    band_percent: float
    p_worse: float


class Verdict(Document):
    """What the gate says of one timing, in a word and a sentence, and the changes it rests on; NEW and throttled rows rest on none.

    `confirmed`: a second measurement by itself said the same of a red row. `accepted`: this is what is expected from now on.
    """

    kind: VerdictKind
    sentence: str
    changes: dict[str, Change] = {}
    confirmed: bool = False
    accepted: bool = False


class PredictedTerm(Document):
    """One figure that a pair predicted beside what was measured, in `s`, `bytes`, `x` (a speedup), `x baseline` or the figure's own unit.

    `subject` is a side's time (`optimized`), another figure of it (`optimized peak_bytes`), a counter or a speedup. `predicted` is None
    where nothing may be compared, and `why` says so; `measured` is None where nobody measured it. `ratio` is measured over predicted, and
    a term has `missed` where they differ by more than 1.25 times. `expression` is what is predicted from; a guess is from nothing.
    """

    subject: str
    shape: str
    predicted: float | None
    measured: float | None
    unit: str
    ratio: float | None = None
    missed: bool = False
    note: str = ""
    expression: str = ""
    is_guess: bool = False
    why: str = ""

    @model_validator(mode="after")
    def _misses_what_it_compares(self) -> Self:
        if self.missed and (self.predicted is None or self.measured is None):
            raise ValueError(f"{self.subject} missed, {self.predicted} predicted, {self.measured} measured; a miss compares two figures")
        return self


class Origin(Document):
    """Where a row was made: the GPUs by name and uuid, none on a CPU, the commit of its pairs, and when its ceilings were measured.

    `date` is when its run began. That, and the versions, are "" of a row from before they were told.
    """

    gpus: tuple[str, ...] = ()
    commit: str = ""
    dirty: bool = False
    ceilings: str = ""
    date: str = ""
    driver: str = ""
    torch: str = ""


class PairResult(Document):
    """One row: everything that a report, a gate or a reader needs to know of one target.

    `timings`, `verdicts` and `predictions` are by named shape; a timing that is never gated has no verdict, but the reason in `ungated`,
    and one of which nothing was predicted no terms. `metrics` are by side, then by name. `assets` are the files that inputs came from:
    their SHA-256 by name. `sources` are the row's files and those that they import or include, none of the harness: their SHA-256 by path.
    `origin` is None of a row from before it was told, and `sources` are empty.
    Of the row's `seconds`, `phases` says where they went: build, prove, verify, measure, profile.
    Where torch.compile compiles a side, `first_compilation_s` are those that such sides took to prepare and first answer at each shape in
    their first process, whose caches were empty, and `beyond_compilation_s` all others; None where none does, and before this was told.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    target: str
    workload_file: FileName
    idea: str = ""
    status: Status
    reason: str = ""
    sides: dict[str, SideResult] = {}
    timings: dict[str, PairTiming] = {}
    proofs: tuple[Proof, ...] = ()
    metrics: dict[str, dict[str, ReportedMetric]] = {}
    assets: dict[str, str] = {}
    verdicts: dict[str, Verdict] = {}
    ungated: dict[str, str] = {}
    predictions: dict[str, tuple[PredictedTerm, ...]] = {}
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    phases: dict[str, float] = {}
    first_compilation_s: float | None = None
    beyond_compilation_s: float | None = None
    origin: Origin | None = None
    sources: dict[str, str] = {}

    @model_validator(mode="after")
    def _is_legal(self) -> Self:
        if (self.status is Status.PASSED) == bool(self.reason.strip()):
            raise ValueError(f"{self.target}: status {self.status} with reason {self.reason!r}; every status but PASSED has one")
        judged = self.metrics or self.verdicts or self.predictions
        carried = "a timing" if self.timings else "metrics or verdicts" if judged else ""
        if carried and self.status is not Status.PASSED:
            raise ValueError(f"{self.target}: status {self.status} carries {carried}; only PASSED may")
        if unknown := {side for timing in self.timings.values() for side in timing.time_ns} - self.sides.keys():
            raise ValueError(f"{self.target}: a timing of {sorted(unknown)}, sides {sorted(self.sides)}; a timed side is one of the sides")
        failed = [proof.claim for proof in self.proofs if proof.state == "failed"]
        if failed and self.status in (Status.PASSED, Status.SKIPPED):
            raise ValueError(f"{self.target}: status {self.status} with a failed proof of {failed[0]!r}; that row is UNPROVEN")
        return self


class Metrics(Document):
    """metrics.json of a run: every target, one row each."""

    schema_version: Literal[1] = SCHEMA_VERSION
    run_id: str
    rows: tuple[PairResult, ...]

    @model_validator(mode="after")
    def _has_one_row_a_target(self) -> Self:
        targets = [row.target for row in self.rows]
        if len(set(targets)) < len(targets):
            raise ValueError(f"targets {sorted({t for t in targets if targets.count(t) > 1})} appear twice; a target has one row")
        return self


class _RecordedGpu(BaseModel):
    name: str
    uuid: str = ""
    driver: str


class _RecordedCheckout(BaseModel):
    commit: str
    dirty: bool


class _RecordedMachine(BaseModel):
    """What those who read a run take from the machine that it describes."""

    cpu: str = ""
    cores: int = 0
    gpus: tuple[_RecordedGpu, ...] = ()
    cuda_driver: str = ""
    nvcc: str = ""
    packages: dict[str, str] = {}
    project: _RecordedCheckout | None = None
    root: _RecordedCheckout | None = None
    notes: tuple[str, ...] = ()


class Run(Document):
    """run.json: the choices, the machine, the seed that made the inputs, and how it ended.

    `noise_percent` is the machine's A/A floor by class of step, as the gate used it; empty where nobody measured one. `ceilings` holds
    the `MachineCeilings` of each device (cuda, cpu) that rows were held against. `advice` is what a language model, by its name, said of
    the results, no measurement; `notes` are of the whole run. `folders` names the folder of each target. `against` is the commit that
    --against named.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    run_id: str
    seed: int
    settings: dict[str, Any]
    environment: dict[str, Any]
    noise_percent: dict[str, float] = {}
    ceilings: dict[str, Any] = {}
    folders: dict[str, str] = {}
    advice: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    against: str = ""
    started: str
    ended: str = ""
    interrupted: bool = False
    exit_code: int | None = None

    @property
    def root(self) -> Path:
        """The folder that holds the pairs."""
        return Path(self.settings["root"])

    @field_validator("settings")
    @classmethod
    def _has_a_root(cls, settings: dict[str, Any]) -> dict[str, Any]:
        root = settings.get("root")
        if not isinstance(root, str) or "\0" in root:
            raise ValueError(f"root {root!r}; a run is of a folder")
        return settings

    @field_validator("environment")
    @classmethod
    def _describes_a_machine(cls, environment: dict[str, Any]) -> dict[str, Any]:
        try:
            _RecordedMachine.model_validate(environment)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        return environment

    @field_validator("folders")
    @classmethod
    def _lie_in_the_run(cls, folders: dict[str, str]) -> dict[str, str]:
        if outside := [name for name in folders.values() if name in (".", "..") or "/" in name or "\0" in name]:
            raise ValueError(f"{outside[0]!r}; a target's folder is a name in the folder of the run")
        return folders


class SideMetrics(Document):
    """metrics.json of one side: its own figures, for tools that compare two folders."""

    schema_version: Literal[1] = SCHEMA_VERSION
    target: str
    side: str
    result: SideResult
    time_ns: dict[str, Interval]
    samples_ns: dict[str, tuple[float, ...]]


DOCUMENTS: dict[str, type[Document]] = {"run": Run, "metrics": Metrics, "pair_metrics": PairResult, "side_metrics": SideMetrics}
