"""A row under the profilers, after timing and apart from it: nsys for what a step does in time, ncu for what its kernels count.

Each tool runs one process with both sides and one steady step a side. A tool that fails costs its own figures and leaves a line; where
nsys gives nothing, torch.profiler traces. ncu's process is started beside nsys's, for what it imports takes seconds, and waits until the
trace has been read. The files lie beside the row's metrics.json.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from common.python.machine.description import child_environment, output_of, version_of
from common.python.machine.doctor import importer_lacks
from common.python.machine.roofline import DECLARED_WITHIN, declared_bytes
from common.python.processes.profile_job import Job, JobSide, Mode
from common.python.profile import ncu as ncu_tables
from common.python.profile import nsys as nsys_tables
from common.python.profile import steps as step_trace
from common.python.profile.ncu import DRAM_BYTES, Profiled
from common.python.profile.steps import SeenStep
from common.python.profile.tools import Ended, JobProcess, SideCrashed, ToolFailed, run, run_job, tool
from common.python.project import PROJECT_ROOT, import_folders
from common.python.results import PairResult, SideProfile, StepTrace
from common.python.session.planning import Plan
from common.python.session.session import Session
from common.python.settings import Profile
from common.python.storage import write_whole

_NSYS = ("--sample=none", "--cpuctxsw=none", "--trace=cuda,nvtx", "--cuda-graph-trace=node")
_NSYS_CAPTURE = ("--capture-range=cudaProfilerApi", "--capture-range-end=stop", "--force-overwrite=true")
_NCU = ("--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all", "--nvtx", "--force-overwrite")
_SETS = {Profile.ROOFLINE: "roofline", Profile.DEEP_DIVE: "full"}
_CACHES = (ncu_tables.L2_PERCENT, ncu_tables.L1_PERCENT)  # without them nobody knows whether a side that nothing else binds waits for them
_ALWAYS = (ncu_tables.TIME, DRAM_BYTES, ncu_tables.DRAM_PERCENT, *_CACHES, ncu_tables.SM_PERCENT, ncu_tables.REGISTERS)
_NO_NCU = "install Nsight Compute"
_FURTHER = (ncu_tables.OCCUPANCY, ncu_tables.L2_HITS, ncu_tables.TENSOR)
_MOST_KERNELS = 32
"""A step of more is not counted: ncu runs each kernel some ten times, flushes the caches each time, and took 0.9 s a kernel on an H200."""

_version = functools.cache(version_of)  # of tools, which take a while to tell it


@dataclass
class Profiling:
    """What came of it: a trace and counters a side, as far as the tools gave them, and a line for each that spoke or failed."""

    steps: dict[str, StepTrace] = field(default_factory=dict)
    launches: dict[str, tuple[Profiled, ...]] = field(default_factory=dict)
    claimed: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def counters(self) -> dict[str, dict[str, float]]:
        """Every counter over a step, by side."""
        return {side: ncu_tables.together(launches) for side, launches in self.launches.items()}

    def of(self, side: str) -> SideProfile | None:
        """What is kept of a side; None if no tool told anything."""
        launches = self.launches.get(side, ())
        if side not in self.steps and not launches:
            return None
        kernels = {name: ncu_tables.together(each) for name, each in ncu_tables.by_kernel(launches).items()}
        return SideProfile(
            step=self.steps.get(side),
            kernels={name: ncu_tables.telling(counters, self.claimed) for name, counters in kernels.items()},
            counters=ncu_tables.telling(ncu_tables.together(launches), self.claimed),
        )


def profile_row(plan: Plan, session: Session, level: Profile | None = None) -> Profiling:
    """Profile one step of every side of a row at its first shape, at `level`, or as the run's settings say: minimal if they do not.

    Nothing that goes wrong is raised: it is a line in `notes`.
    """
    found = Profiling(claimed=plan.counters_claimed)
    if plan.ranks > 1:
        found.notes.append(f"profile: none of {plan.ranks} ranks, as a step under a profiler runs in one process")
        return found
    profiled_row = _ProfiledRow(plan, session, level or session.settings.ncu_metric_set or session.settings.profile or Profile.MINIMAL)
    try:
        with _Counter(profiled_row, found.claimed) as counter:
            _trace(profiled_row, found, counter)
            if plan.device == "cuda" and profiled_row.level is not Profile.NONE:
                sides = _countable(profiled_row, found)
                if sides:
                    session.tell("counting under ncu")
                    found.launches, notes = _count(profiled_row, counter, sides)
                    found.notes += notes + _uncounted(sides, found)
    except SideCrashed as crash:
        found.notes.append(f"profile: {crash}; the timing is from before")
    except (ToolFailed, ncu_tables.UnreadableTable) as failure:
        found.notes.append(f"profile: ncu: {failure}")
    kept = session.ceilings.get(plan.device)
    found.notes += _bytes_off(plan, found, kept.cache_bytes if kept else 0)
    return found


def profile_red(row: PairResult, plan: Plan, shape: str, session: Session) -> PairResult:
    """`row` with a minimal profile at a shape at which it is red; its timings and its status stay as they are."""
    try:
        tool("ncu", _NO_NCU)
    except ToolFailed as failure:
        return row.model_copy(update={"notes": (*row.notes, f"profile: ncu: {failure}")})
    found = profile_row(replace(plan, timed={shape: plan.timed[shape]}, work={shape: plan.work[shape]}), session, Profile.MINIMAL)
    sides = {side: result.model_copy(update={"profile": found.of(side)}) for side, result in row.sides.items()}
    return row.model_copy(update={"sides": sides, "notes": (*row.notes, *found.notes)})


class _ProfiledRow:
    """What the tools of one row share."""

    def __init__(self, plan: Plan, session: Session, level: Profile) -> None:
        self.plan = plan
        self.level = level
        self.folder = session.logs(plan.target, "")
        self.labels = {side: f"{plan.target}/{side}" for side in plan.sides}
        self.session = session
        self._environment = child_environment(PROJECT_ROOT, plan.device, packages=import_folders(session.settings.root))
        self._shape = next(iter(plan.timed.values()))

    def at(self, name: str) -> Path:
        """A file of the row's profile."""
        return self.folder / name

    def start(self, under: Sequence[str], log: str) -> JobProcess:
        """A process under a tool that waits for `bracket`. Raises ToolFailed."""
        return JobProcess(under, self.at(log), self._environment)

    def bracket(self, process: JobProcess, sides: Sequence[str]) -> Ended:
        """Have a process that waits do a step of `sides`. Raises ToolFailed or SideCrashed."""
        return process.do(self._job("bracket", sides), self.session.limit_s("profile"))

    def trace(self, log: str) -> Ended:
        """Have torch.profiler trace a step of every side. Raises ToolFailed or SideCrashed."""
        return run_job((), self._job("trace", tuple(self.labels)), self.at(log), self._environment, self.session.limit_s("profile"))

    def call(self, command: Sequence[str], log: str) -> Ended:
        """Run a tool by itself. Raises ToolFailed."""
        return run(command, self.at(log), self._environment, self.session.limit_s("profile"))

    def trace_file(self, side: str) -> Path:
        """Where torch.profiler's trace of a side goes."""
        return self.session.logs(self.plan.target, side) / "trace.json"

    def _job(self, mode: Mode, chosen: Sequence[str]) -> Job:
        builds = {side: self.session.builds.get(str(self.plan.file(side))) for side in chosen}
        sides = [
            JobSide(
                label=self.labels[side],
                workload=str(self.plan.selection.pair.workload),
                side=str(self.plan.file(side)),
                library=built.library if (built := builds[side]) else "",
                shapes=[dict(self._shape)],
                trace=str(self.trace_file(side)),
                past=self.session.past,
                caches=self.session.caches_of(self.plan, side),
            )
            for side in chosen
        ]
        return Job(
            mode=mode,
            device=self.plan.device,
            seed=self.session.new_seed(),
            folder=str(self.session.inputs_folder),
            progress=str(self.at("profile_progress.txt")),
            log=str(self.at("profile_program.log")),
            sides=sides,
        )


# --- in time


def _trace(profiled_row: _ProfiledRow, found: Profiling, counter: _Counter) -> None:
    """What a step of each side does in time: by nsys, or by torch.profiler where nsys gives nothing. Raises SideCrashed."""
    if profiled_row.plan.device == "cuda":
        profiled_row.session.tell("tracing under nsys")
        try:
            steps = _by_nsys(profiled_row, counter)
        except SideCrashed:
            raise
        except (ToolFailed, nsys_tables.UnreadableTrace) as failure:
            found.notes.append(f"profile: nsys: {failure}; torch.profiler traced instead")
        else:
            write_whole(
                profiled_row.at("profile.chrome.json"), step_trace.chrome_trace({profiled_row.labels[side]: steps[side] for side in steps})
            )
            found.steps = {side: step_trace.figures(step, "nsys") for side, step in steps.items()}
            found.notes.append(f"profile: nsys {_version('nsys')} traced a step a side")
            return
    else:
        found.notes.append("profile: nsys and ncu are for GPUs; torch.profiler traced a step a side")
    profiled_row.session.tell("tracing with torch.profiler")
    try:
        profiled_row.trace("profile_torch.log")
    except SideCrashed:
        raise
    except ToolFailed as failure:
        found.notes.append(f"profile: torch.profiler: {failure}")
        return
    seen = {side: step_trace.read_chrome(profiled_row.trace_file(side), label) for side, label in profiled_row.labels.items()}
    found.steps = {side: step_trace.figures(step, "torch.profiler") for side, step in seen.items()}


def _by_nsys(profiled_row: _ProfiledRow, counter: _Counter) -> dict[str, SeenStep]:
    """The steps that nsys recorded, while `counter` begins. Raises ToolFailed, SideCrashed or UnreadableTrace."""
    nsys = tool("nsys", "install Nsight Systems, or Nsight Compute, which brings one")
    output, report, database = profiled_row.at("profile"), profiled_row.at("profile.nsys-rep"), profiled_row.at("profile.sqlite")
    for old in (report, database, profiled_row.at("profile.qdstrm")):
        old.unlink(missing_ok=True)
    with profiled_row.start([nsys, "profile", *_NSYS, *_NSYS_CAPTURE, "--output", str(output)], "profile_nsys.log") as process:
        counter.begin()
        ended = profiled_row.bracket(process, tuple(profiled_row.labels))
    if not report.exists():
        raise ToolFailed(_why_no_report(Path(nsys), ended, profiled_row.at("profile.qdstrm")))
    table = ("--report", "cuda_gpu_trace", "--format", "csv", "--output", str(output))
    told = profiled_row.call([nsys, "stats", "--force-export=true", *table, str(report)], "profile_nsys_stats.log")
    if not database.exists():
        raise ToolFailed(f"{report.name} could not be exported ({told.last_line}); expected {database.name}")
    steps = nsys_tables.read_steps(database, tuple(profiled_row.labels.values()))
    database.unlink()  # ten times the report that it comes from
    return {side: steps[label] for side, label in profiled_row.labels.items()}


def _why_no_report(nsys: Path, ended: Ended, stream: Path) -> str:
    if "Importer error status" in ended.log or stream.exists():
        lacking = ", ".join(importer_lacks(nsys))
        why = f"its importer lacks {lacking}" if lacking else f"its importer failed ({ended.line_with('Importer error') or 'no message'})"
        return f"it recorded a step and wrote no report: {why}; expected {stream.with_suffix('.nsys-rep').name}"
    return f"it wrote no report, exit code {ended.code} ({ended.last_line}); expected {stream.with_suffix('.nsys-rep').name}"


# --- in counters


def _countable(profiled_row: _ProfiledRow, found: Profiling) -> list[str]:
    """The sides whose step ncu can count in seconds, by what the trace saw; for each other side a line."""
    many = {side: step.kernels for side, step in found.steps.items() if step.kernels > _MOST_KERNELS}
    found.notes += [
        f"profile: ncu: {side} launches {kernels} kernels a step; expected at most {_MOST_KERNELS}, so only the trace tells of it"
        for side, kernels in many.items()
    ]
    return [side for side in profiled_row.labels if side not in many]


class _Counter:
    """ncu's processes of a row: the first may begin before it is known which sides it counts, and none outlives the block."""

    def __init__(self, profiled_row: _ProfiledRow, claimed: Sequence[str]) -> None:
        wanted = _ALWAYS if profiled_row.level is Profile.MINIMAL else _ALWAYS + _FURTHER
        self.metrics = tuple(dict.fromkeys((*wanted, *claimed)))
        self._row = profiled_row
        self._begun: JobProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._begun:
            self._begun.close()

    def begin(self) -> None:
        """Start ncu at the row's level, if that is any; what keeps it from starting, `collect` raises."""
        if self._row.level is not Profile.NONE:
            with contextlib.suppress(ToolFailed):
                self._begun = self._start(self.metrics)

    def collect(self, sides: Sequence[str], without: Sequence[str] = ()) -> Ended:
        """Have ncu count a step of `sides`: what has begun, or, once more, one `without` some metrics. Raises ToolFailed or SideCrashed."""
        begun = None if without else self._begun
        with begun or self._start([metric for metric in self.metrics if metric not in without]) as process:
            return self._row.bracket(process, sides)

    def _start(self, metrics: Sequence[str]) -> JobProcess:
        ncu = tool("ncu", _NO_NCU)
        profiled_row = self._row
        name = _SETS.get(profiled_row.level)
        chosen = ("--set", name) if name and name in _sets_of(ncu) else ()
        # Each pass of a kernel finds the caches as the side is timed with them: flushed, or as the pass before left them.
        caches = "none" if profiled_row.plan.described.cache == "hot" else "all"
        profiled_row.at("profile.ncu-rep").unlink(missing_ok=True)
        what = ("--cache-control", caches, "--metrics", ",".join(metrics), "--export", str(profiled_row.at("profile")))
        return profiled_row.start([ncu, *_NCU, *chosen, *what], "profile_ncu.log")


def _count(profiled_row: _ProfiledRow, counter: _Counter, sides: Sequence[str]) -> tuple[dict[str, tuple[Profiled, ...]], list[str]]:
    """The launches of each side with their counters, and a line. Raises ToolFailed, SideCrashed or UnreadableTable."""
    ncu = tool("ncu", _NO_NCU)
    notes = []
    if (name := _SETS.get(profiled_row.level)) and name not in (sets := _sets_of(ncu)):
        notes.append(f"profile: ncu: no set {name}; it has {', '.join(sets) or 'none that --list-sets names'}")
    ended = counter.collect(sides)
    if refused := _refused(ended, counter.metrics):
        notes.append(f"profile: ncu: does not know {', '.join(refused)}; counted without")
        ended = counter.collect(sides, without=refused)
    report = profiled_row.at("profile.ncu-rep")
    if not report.exists():
        raise ToolFailed(_why_no_counters(ended))
    profiled_row.call([ncu, "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"], "profile_counters.csv")
    launches = ncu_tables.read_file(profiled_row.at("profile_counters.csv"))
    labels = tuple(profiled_row.labels.values())
    found = {side: tuple(each for each in launches if ncu_tables.side_of(each, labels) == profiled_row.labels[side]) for side in sides}
    notes.append(f"profile: ncu {_version('ncu')} counted {profiled_row.level} in a step a side")
    return {side: mine for side, mine in found.items() if mine}, notes


def _uncounted(sides: Sequence[str], found: Profiling) -> list[str]:
    """What is to be said of sides that ncu saw no kernel of: one that by the trace only copies has none."""
    none = [side for side in sides if side not in found.launches]
    copying = [side for side in none if side in found.steps and not found.steps[side].kernels]
    lost = [side for side in none if side not in copying]
    return [
        *(f"profile: ncu: {side} launches no kernel, and ncu counts nothing else" for side in copying),
        *(f"profile: ncu: no launch is in the range of {side}; expected some of each side" for side in lost),
    ]


def sets_in(listed: str) -> tuple[str, ...]:
    """The names in what `ncu --list-sets` prints: a ruled table whose first column they are."""
    rules = [number for number, line in enumerate(listed.splitlines()) if re.match(r"-{3,} ", line)]
    lines = listed.splitlines()[rules[-1] + 1 :] if rules else []
    return tuple(line.split()[0] for line in lines if line.strip())


@functools.cache
def _sets_of(ncu: str) -> tuple[str, ...]:
    """The sets of this ncu, which takes a while to tell them."""
    return sets_in(output_of(ncu, "--list-sets", timeout_s=60.0))


def _refused(ended: Ended, asked: Sequence[str]) -> list[str]:
    """The counters that this ncu or GPU does not have: those that an error names, or else those that a result can do without."""
    errors = "\n".join(line for line in ended.log.splitlines() if line.startswith("==ERROR=="))
    if not errors or "ERR_NVGPUCTRPERM" in errors:
        return []
    return [metric for metric in asked if metric in errors] or [metric for metric in asked if metric in _FURTHER]


def _why_no_counters(ended: Ended) -> str:
    if "ERR_NVGPUCTRPERM" in ended.log:
        return (
            "the driver keeps the GPU's counters for root (ERR_NVGPUCTRPERM); run as root, with CAP_SYS_ADMIN in a container, or have "
            "NVreg_RestrictProfilingToAdminUsers=0 set"
        )
    told = ended.line_with("==ERROR==") or ended.line_with("No kernels were profiled") or ended.last_line
    return f"it wrote no report, exit code {ended.code} ({told}); expected profile.ncu-rep"


def _bytes_off(plan: Plan, found: Profiling, cache_bytes: int) -> Iterator[str]:
    """A sentence if no side moves the bytes that the workload declares: one off by a tenth is a finding, if `traffic:` does not say why.

    What a step writes last may be in the L2, of `cache_bytes`, when the counting ends: so much less is no finding.
    """
    work: Mapping[str, float] = next(iter(plan.work.values()), {})
    declared = declared_bytes(work)
    moved = {side: counters[DRAM_BYTES] for side, counters in found.counters.items() if counters.get(DRAM_BYTES)}
    if not declared or not moved:
        return
    least = declared - min(work.get("dram_write", 0.0), cache_bytes)
    side = min(moved, key=lambda name: abs(math.log(moved[name] / declared)))
    if not least / DECLARED_WITHIN <= moved[side] <= declared * DECLARED_WITHIN:
        in_cache = f", {(declared - least) / 1e6:.4g} MB of which the L2 may keep" if least < declared else ""
        expected = f"expected the {declared / 1e6:.4g} MB that it declares, within 10 %{in_cache}"
        if why := plan.workload_directives.traffic:
            expected = f"{declared / 1e6:.4g} MB are declared: {why}"
        yield (
            f"{plan.selection.pair.workload.name}: found {moved[side] / 1e6:.4g} MB of DRAM traffic in a step of {side}, "
            f"the nearest of its sides; {expected}"
        )
