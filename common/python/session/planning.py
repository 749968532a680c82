"""From targets to plans: what each row will do on this machine, or why it cannot, decided before anything runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from common.python.errors import BenchmarkError, SideFailure
from common.python.machine.description import Gpu, Machine, unmet
from common.python.machine.needs import parse_need
from common.python.pairs.claims import Claim, read_claims, require_countable
from common.python.pairs.directives import Directives, read_directives
from common.python.pairs.discovery import LIBRARY, Pair, is_folder, with_rungs
from common.python.pairs.goals import ENERGY, OF_A_GPU, SETUP
from common.python.pairs.predictions import require_predictions
from common.python.pairs.sources import cubins_of, digest_of, with_imports
from common.python.pairs.targets import Selection
from common.python.processes import messages
from common.python.processes.fork_server import Child, ForkServer
from common.python.processes.messages import ShapeEntries
from common.python.project import import_folders
from common.python.results import BASELINE
from common.python.settings import Device, Settings
from common.python.storage import runs_folder
from common.python.wording import at_shape, bytes_text

CPU_SHAPE = "cpu"
NO_DEVICE = "no CUDA device"
"""Why a pair with a side in CUDA C++ is skipped on a CPU."""


@dataclass(frozen=True)
class Plan:
    """One row to be: its files and directives, its shapes on this machine with the work at each, and why it is skipped, if it is.

    `digests` are of the text of the workload and a side, by side, as they were planned. `gpus` are those of the machine that the row uses:
    as many as it needs, one if it does not say. A side runs in `ranks` processes. `only_checked` says why a row that was checked on the CPU
    is SKIPPED nevertheless: its place is on more GPUs. `without_room` has the shapes that the GPU's memory has no room for, and why;
    `left_out` the library's side where the row goes on without it, and why. Sides find modules in `import_folders` too, those of the
    package or project that holds the root. `was_interpreted`: a side launched a Triton kernel in the interpreter, as the row's checks saw.
    """

    selection: Selection
    described: messages.Described
    workload_directives: Directives
    side_directives: Mapping[str, Directives]
    device: Literal["cuda", "cpu"]
    timed: Mapping[str, ShapeEntries]
    work: Mapping[str, Mapping[str, float]]
    skip: str
    digests: Mapping[str, str]
    gpus: tuple[Gpu, ...]
    ranks: int = 1
    only_checked: str = ""
    without_room: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    import_folders: tuple[Path, ...] = ()
    was_interpreted: bool = False

    @property
    def target(self) -> str:
        """The row's name; a half is named by its side."""
        pair = self.selection.pair
        return f"{pair.directory}:{self.sides[0]}_{pair.name}" if self.selection.is_half else pair.target

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides of the row, in order."""
        return self.selection.sides

    @property
    def is_cold(self) -> bool:
        """Whether every sample is a fresh process with cold compile caches, for what counts is how soon a side is ready."""
        return self.described.goal == SETUP

    @property
    def is_sustained(self) -> bool:
        """Whether calls are timed back to back, for what counts is what they draw: a counter of energy needs a second."""
        return self.described.goal == ENERGY

    @property
    def is_unmeasured(self) -> bool:
        """Whether what the row's goal asks for is a GPU's, and there is none."""
        return self.device == "cpu" and self.described.goal in OF_A_GPU

    @property
    def serves(self) -> bool:
        """Whether a step of the row answers a trace of requests."""
        return self.described.serving

    @property
    def clock(self) -> Literal["device", "launch", "host"]:
        """The clock that counts here: on a CPU it is always the host's."""
        return self.described.clock if self.device == "cuda" else "host"

    @property
    def interpreted(self) -> bool:
        """Whether Triton's interpreter runs a side here, which checks it and says nothing of its speed."""
        return self.device == "cpu" and (self.was_interpreted or any(self.uses_triton(side) for side in self.sides))

    def uses_triton(self, side: str) -> bool:
        """Whether a side has Triton kernels, its own or those of a file that it imports."""
        return uses_triton(self.file(side), self.import_folders)

    def launches_triton(self, side: str) -> bool:
        """Whether a side has Triton kernels that it launches on a GPU here."""
        return self.device == "cuda" and self.uses_triton(side)

    @cached_property
    def claims(self) -> dict[str, tuple[Claim, ...]]:
        """What the sides of the row claim, by side."""
        return claims_of(self.selection.pair, self.side_directives)

    @property
    def counters_claimed(self) -> tuple[str, ...]:
        """The profiler's counters that the row's claims name."""
        measures = [claim.measure for claims in self.claims.values() for claim in claims]
        return tuple(dict.fromkeys(measure.names[0] for measure in measures if measure.kind == "counter"))

    @property
    def cores(self) -> tuple[int, ...]:
        """The cores that each side may use, where these are several: all, for the harness waits while a side is timed.

        Work of the host, and what is timed by the host's clock, has them where a side of the row may have threads or processes.
        """
        allowed = {name for directives in self.side_directives.values() for name in directives.allows}
        is_of_host = self.described.place == "host" or self.described.clock == "host"
        is_parallel = is_of_host and self.ranks == 1 and allowed & {"threads", "processes"}
        return tuple(sorted(os.sched_getaffinity(0))) if is_parallel else ()

    def compiles(self, side: str) -> bool:
        """Whether a side is compiled by torch.compile."""
        return uses_compiler(self.file(side))

    def uses_meshes(self, side: str) -> bool:
        """Whether a side of several ranks is made of torch's DTensors or FSDP."""
        return self.ranks > 1 and uses_meshes(self.file(side))

    def file(self, side: str) -> Path:
        """The source file of a side."""
        return self.selection.pair.sides[side]


def make_plans(selections: Sequence[Selection], settings: Settings, machine: Machine, server: ForkServer, folder: Path) -> tuple[Plan, ...]:
    """A plan a selection.

    Raises BenchmarkError for a flag that is not right, or with a line for each workload and each side that is not.
    """
    wrong: list[str] = []
    with ExitStack() as stack:

        def describer() -> Child:
            return stack.enter_context(server.fork("describer", folder / f"describe_{len(wrong)}.log"))

        def describe(selection: Selection, kwargs: dict[str, str]) -> messages.Described:
            request = messages.Describe(
                workload=str(selection.pair.workload),
                sides={side: str(selection.pair.sides[side]) for side in selection.sides},
                kwargs=kwargs,
                weigh=bool(machine.gpus) and settings.device is not Device.CPU,
            )
            try:
                return child.ask(request, messages.Described, settings.timeout_s("prepare"))
            except SideFailure as failure:
                raise BenchmarkError(_in_file(selection.pair.workload, settings.root, failure.reason)) from failure

        child, plans = describer(), []
        device = choose_device(settings, machine, child.ask(messages.Probe(), messages.Probed, settings.timeout_s("prepare")))
        for selection in selections:
            try:
                climbed = _climbed(selection, settings)
                plans.append(_plan(climbed, describe(climbed, settings.kwargs), settings, machine, device))
            except BenchmarkError as error:
                if str(error).startswith("--"):  # of no file, but of what was asked
                    raise
                wrong += [str(error), *_wrong_sides(selection, settings.root)]
                child.kill()  # if it has not died of that file
                child = describer()
        if wrong:
            raise BenchmarkError("\n".join(dict.fromkeys(wrong)))
        return _swept(plans, settings, describe) if settings.sweep else tuple(plans)


def _swept(
    plans: Sequence[Plan], settings: Settings, describe: Callable[[Selection, dict[str, str]], messages.Described]
) -> tuple[Plan, ...]:
    """The one plan, timed at every value of the shape entry that --sweep names."""
    if len(plans) != 1:
        raise BenchmarkError(f"--sweep: found {len(plans)} targets; expected one pair, or one half")
    ((key, values),) = settings.sweep.items()
    timed, work = {}, {}
    weighed: dict[str, messages.DeviceBytes] = {}
    for value in values:
        try:
            described = describe(plans[0].selection, settings.kwargs | {key: value})
        except BenchmarkError as error:
            raise BenchmarkError(str(error).replace("--kwargs", "--sweep", 1)) from error
        on_cpu, name = CPU_SHAPE in plans[0].timed, f"{key}={value}"
        timed[name] = described.cpu_at if on_cpu else next(iter(described.timed.values()))
        ranks = plans[0].ranks
        work[name] = described.cpu_work[ranks] if on_cpu else next(iter(described.work[ranks].values()))
        weighed |= dict(zip([name], described.device_bytes.values(), strict=False))
    return (_with_room(replace(plans[0], timed=timed if plans[0].timed else {}, work=work), settings, weighed),)


def claims_of(pair: Pair, directives: Mapping[str, Directives]) -> dict[str, tuple[Claim, ...]]:
    """What the sides of `pair` claim, by side of `directives`.

    What another pair's file, borrowed as the baseline or as a ladder's step, has that its own baseline has not is no claim of this pair.
    """
    own = pair.workload.stem.removeprefix("workload_")
    borrowed = {side for side in directives if side == BASELINE or not pair.sides[side].stem.partition("_")[2].startswith(own)}
    claims = {side: read_claims(pair.sides[side], each) for side, each in directives.items()}
    return {side: tuple(claim for claim in found if not (claim.separates and side in borrowed)) for side, found in claims.items()}


def _require_countable(pair: Pair, directives: Mapping[str, Directives], ranks: Sequence[int], root: Path) -> None:
    for side, claims in claims_of(pair, directives).items():
        try:
            require_countable(pair.sides[side], claims, ranks)
        except BenchmarkError as error:
            raise BenchmarkError(_in_file(pair.sides[side], root, str(error))) from error


def gpus_for(directives: Iterable[Directives], machine: Machine) -> tuple[Gpu, ...]:
    """The GPUs of `machine` that files with these directives use: as many as they need, one if they do not say."""
    needs = [parse_need(need) for each in directives for need in each.needs]
    return machine.gpus[: max((count for name, count in needs if name == "gpus"), default=1)]


def _climbed(selection: Selection, settings: Settings) -> Selection:
    if selection.is_half or settings.against:  # that compares one side with itself: a ladder begins at its own baseline
        return selection
    pair = with_rungs(selection.pair, settings.root.resolve())
    return selection if pair is selection.pair else Selection(pair, tuple(pair.sides))


def require_gpu(settings: Settings, machine: Machine) -> None:
    """Raise BenchmarkError if what needs a GPU is asked for where there is none; whether torch can use one is only known by asking it."""
    if settings.device is Device.CUDA and not machine.gpus:
        raise BenchmarkError("--device cuda: found 0 GPUs; expected one, or --device cpu")
    if settings.accept_regressions and (settings.device is Device.CPU or not machine.gpus):
        found = "--device cpu" if settings.device is Device.CPU else "0 GPUs"
        raise BenchmarkError(f"--accept: found {found}; expected a GPU, as a CPU's time is never gated")


def choose_device(settings: Settings, machine: Machine, probed: messages.Probed) -> Literal["cuda", "cpu"]:
    """The device that `--device` and the machine allow. Raises BenchmarkError if CUDA is asked for and not usable."""
    if settings.device is Device.CPU:
        return "cpu"
    if probed.cuda and machine.gpus:
        return "cuda"
    if settings.device is Device.CUDA:
        usable = "can" if probed.cuda else "cannot"
        raise BenchmarkError(f"--device cuda: found {len(machine.gpus)} GPUs, and torch {probed.torch} {usable} use CUDA; expected both")
    return "cpu"


def _plan(
    selection: Selection, described: messages.Described, settings: Settings, machine: Machine, device: Literal["cuda", "cpu"]
) -> Plan:
    workload_directives = _directives_of(selection.pair.workload, settings.root)
    side_directives = {side: _directives_of(selection.pair.sides[side], settings.root) for side in selection.sides}
    if settings.against:  # both sides are the optimized one: nothing in them separates the two
        side_directives = {side: replace(directives, proves=()) for side, directives in side_directives.items()}
    if not (settings.kwargs or settings.sweep or settings.against):  # equations are of the pair's own shapes and sides
        require_predictions(selection.pair.workload, selection.pair.sides, described.timed)
    if described.ranks:
        _require_countable(selection.pair, side_directives, described.ranks, settings.root)
    here: Literal["cuda", "cpu"] = "cpu" if described.place == "host" else device
    ranks, only_checked = choose_ranks(selection.pair.workload, described.ranks, settings.ranks, here, len(machine.gpus))
    here = "cpu" if only_checked else here
    timed, work = described.timed, described.work[ranks]
    if device == "cpu" or only_checked:
        has_cores = ranks == 1 or (machine.cores >= ranks and not only_checked)
        timed = {CPU_SHAPE: described.cpu_at} if described.cpu_at and has_cores else {}
        work = {CPU_SHAPE: described.cpu_work[ranks]}
    usable = machine if device == "cuda" else machine.model_copy(update={"gpus": ()})
    unmet_by = partial(_skip_reason, machine=usable, device=device if only_checked else here, folder=files_folder(settings))
    skip, left_out = _lacking(selection, workload_directives, side_directives, unmet_by)
    if left_out:
        selection = replace(selection, sides=tuple(side for side in selection.sides if side not in left_out))
        side_directives = {side: side_directives[side] for side in selection.sides}
    skip = skip or (_not_of_traces(settings) if described.serving else "")
    directives = (workload_directives, *side_directives.values())
    files = {side: selection.pair.sides[side] for side in selection.sides}
    digests = {side: digest_of(selection.pair.workload, file, *cubins_of(file)) for side, file in files.items()}
    gpus = machine.gpus[:ranks] if ranks > 1 else gpus_for(directives, machine)
    if only_checked and any(selection.pair.sides[side].suffix == ".cu" for side in selection.sides):
        skip = skip or only_checked.partition(";")[0]
    plan = Plan(selection, described, workload_directives, side_directives, here, timed, work, skip, digests, gpus, ranks, only_checked)
    plan = replace(plan, left_out=left_out, import_folders=import_folders(settings.root))
    plan = plan if settings.sweep else _with_room(plan, settings, described.device_bytes)
    return replace(plan, timed={}) if plan.interpreted or plan.is_unmeasured else plan


def _with_room(plan: Plan, settings: Settings, weighed: Mapping[str, messages.DeviceBytes]) -> Plan:
    """The plan without the timed shapes that the GPU's memory has no room for; SKIPPED if that leaves none."""
    if plan.device != "cuda" or not plan.gpus:
        return plan
    # Sides are verified one after the other, and timed in turns; of those timed by fresh processes one is there at a time.
    sides = len(plan.sides) if settings.measures and not (plan.is_cold or settings.cold_start) else 1
    at = {name: f"{plan.selection.pair.workload.name}{at_shape(name)}" for name in plan.timed}
    reasons = {name: no_room(at[name], weighed[name], sides, plan.gpus[0]) for name in plan.timed if name in weighed}
    without_room = {name: reason for name, reason in reasons.items() if reason}
    timed = {name: shape for name, shape in plan.timed.items() if name not in without_room}
    skip = plan.skip or ("" if timed else next(iter(without_room.values()), ""))
    return replace(plan, timed=timed, skip=skip, without_room=without_room)


def no_room(what: str, weighed: messages.DeviceBytes, sides: int, gpu: Gpu) -> str:
    """Why a GPU's memory has no room for a shape of `what`, in one sentence; "" where it may have.

    Inputs and outputs alone, of so many `sides` at a time and of the referee: what a side makes besides is not known before it runs.
    """
    needed = sides * weighed.side + weighed.referee
    if needed <= gpu.memory_bytes:
        return ""
    whose = f"{sides} {'side' if sides == 1 else 'sides'} and of the referee"
    return f"{what}: inputs and outputs of {whose} take {bytes_text(needed)}; {gpu.name} has {bytes_text(gpu.memory_bytes)}"


def choose_ranks(workload: Path, possible: Sequence[int], asked: int | None, device: Literal["cuda", "cpu"], gpus: int) -> tuple[int, str]:
    """How many processes a side runs in, and why that is on the CPU although there is a GPU; "" where it is not.

    Raises BenchmarkError where as many are `asked` for as the workload, which can run in the `possible` ones, cannot run in.
    """
    if asked is not None and asked not in (possible or (1,)):
        known = f"one of ranks={tuple(possible)}" if possible else "1, as the workload has no ranks"
        raise BenchmarkError(f"--ranks {asked}: {workload.name} cannot run in as many processes; expected {known}")
    if not possible:
        return 1, ""
    if device == "cpu":
        return asked or min(possible), ""
    wanted = asked or max((count for count in possible if count <= gpus), default=min(possible))
    if wanted <= gpus:
        return wanted, ""
    fewest = min(possible)
    return fewest, f"needs {wanted} GPUs, found {gpus}; checked with {fewest} gloo processes on the CPU"


def _not_of_traces(settings: Settings) -> str:
    """Why a row that serves traces has nothing to say under these settings; "" if it has."""
    flag = "--cold-start" if settings.cold_start else "--sustained" if settings.sustained else ""
    return f"{flag} is about steps, and a step of this row serves a trace of requests" if flag else ""


def files_folder(settings: Settings) -> Path:
    """The nearest existing folder at or above the artifacts folder: the input files of a run's sides will lie on its file system."""
    wanted = settings.artifacts_dir or runs_folder(settings.root)
    return next(folder for folder in (wanted.absolute(), *wanted.absolute().parents) if is_folder(folder))


def _lacking(
    selection: Selection,
    workload: Directives,
    sides: Mapping[str, Directives],
    unmet_by: Callable[[Sequence[Path], Sequence[Directives]], str],
) -> tuple[str, dict[str, str]]:
    """Why a row is skipped, "" if it is not, and why the library's side is left out of one that is not.

    What a library needs says nothing of the pair: where the pair can run, it runs, and a row that is skipped says what the pair needs.
    """
    own = [side for side in selection.sides if side != LIBRARY]
    skip = unmet_by([selection.pair.sides[side] for side in own], [workload, *(sides[side] for side in own)])
    if skip or LIBRARY not in sides:
        return skip, {}
    lacking = unmet_by([selection.pair.sides[LIBRARY]], [sides[LIBRARY]])
    return "", {LIBRARY: lacking} if lacking else {}


def _skip_reason(
    files: Sequence[Path], directives: Sequence[Directives], *, machine: Machine, device: Literal["cuda", "cpu"], folder: Path
) -> str:
    needs = tuple(need for each in directives for need in each.needs)
    reason = unmet(needs, machine, folder)
    if not reason and device == "cpu" and any(file.suffix == ".cu" for file in files):
        reason = NO_DEVICE
    instead = next((each.instead for each in directives if each.instead), "")
    return f"{reason}; try {instead}" if reason and instead else reason


def uses_triton(path: Path, folders: Sequence[Path] = ()) -> bool:
    """Whether the side in the file at `path` has Triton kernels, its own or those of a file beside it, or in `folders`, that it imports."""
    return path.suffix == ".py" and any(
        "import triton" in text or "from triton" in text for text in map(Path.read_text, with_imports(path, folders))
    )


def uses_compiler(path: Path) -> bool:
    """Whether the side in the file at `path` asks for torch.compile."""
    return path.suffix == ".py" and "torch.compile" in path.read_text(encoding="utf-8")


def uses_meshes(path: Path) -> bool:
    """Whether the side in the file at `path`, or a file beside it that it imports, asks for torch's DTensors or FSDP."""
    return path.suffix == ".py" and any(
        f"torch.distributed.{name}" in text for text in map(Path.read_text, with_imports(path)) for name in ("tensor", "fsdp")
    )


def _directives_of(path: Path, root: Path) -> Directives:
    try:
        directives = read_directives(path)
        if path.suffix == ".py":
            with_imports(path)
        for need in directives.needs:
            parse_need(need)
        read_claims(path, directives)
    except BenchmarkError as error:
        raise BenchmarkError(_in_file(path, root, str(error))) from error
    return directives


def _wrong_sides(selection: Selection, root: Path) -> Iterator[str]:
    for side in selection.sides:
        try:
            _directives_of(selection.pair.sides[side], root)
        except BenchmarkError as error:
            yield str(error)


def _in_file(path: Path, root: Path, sentence: str) -> str:
    # A sentence that starts with the file's name gets its folder; one about a flag, or that starts with a side's, is not about it.
    shown = str(path.relative_to(root) if path.is_relative_to(root) else path)
    for name in (str(path), path.name):
        if sentence.startswith(name):
            return f"{shown}{sentence.removeprefix(name)}"
    if (of_another := re.match(r"([^\s:]*/)?(baseline|optimized|library)_[^\s:/]*\.(py|cu)(?=:)", sentence)) and (
        other := path.parent / of_another[0]
    ).is_file():
        return f"{other.relative_to(root) if other.is_relative_to(root) else other}{sentence[of_another.end() :]}"
    return sentence if sentence.startswith("--") else f"{shown}: {sentence}"
