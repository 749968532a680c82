"""A first hour on a machine that nobody here has seen: look at it, find its ceilings, verify, measure, and bundle what came of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from common.python.errors import BenchmarkError, ExitCode
from common.python.gate.expectations import expectations_path, gpu_key
from common.python.gate.outcome import worst_of
from common.python.machine.ceilings import MachineCeilings, ceilings_path, machine_key
from common.python.machine.description import Machine, describe_machine, private_names, private_paths
from common.python.machine.doctor import examine, unfit
from common.python.machine.needs import FEATURES, Capability
from common.python.pairs.discovery import Tree, discover
from common.python.pairs.targets import select
from common.python.project import program
from common.python.report.bundle import bundle_of, texts_of_run, without_variables
from common.python.report.documents import Examination, examination_of
from common.python.report.rows import counts_text
from common.python.report.run_folder import RUN_FILE, load
from common.python.report.terminal import Progress, print_ceilings, print_findings, print_results
from common.python.results import SCHEMA_VERSION, Document, PairResult
from common.python.run.interruption import Interrupted, Interruption, interruptible
from common.python.run.listing import Listed, listed
from common.python.run.peak import NO_TIME, measure_peaks
from common.python.run.suite import plan_only, run_suite
from common.python.session.planning import require_gpu
from common.python.settings import Device, Settings
from common.python.storage import document_text, fills_disk, make_folder, make_runs_folder, read_document, runs_folder, write_whole

StepName = Literal["doctor", "peak", "verify", "run"]
STEPS: tuple[StepName, ...] = ("doctor", "peak", "verify", "run")
_LAST = len(STEPS) + 1  # the bundle
MEASURED: Capability = (9, 0)
"""The newest GPUs that pairs have been measured on: what needs a feature that these lack has only been compiled."""
_ENGINE = "decompression_engine"  # of the machine around the GPU, and of none before capability 10.0
_FILE, _DOCTOR, _CEILINGS = "first_run.json", "doctor.json", "ceilings"
_PREFIX = "first_run_"
_ENOUGH_RUNS = 20  # to read for how long something took


class Step(Document):
    """One step of a first run: how it ended, how long it took, and what came of it in a sentence."""

    name: StepName
    exit_code: int
    seconds: float
    said: str


class FirstRun(Document):
    """first_run.json: what was asked for, each step that was begun or was too late, and the machine without its variables."""

    schema_version: Literal[1] = SCHEMA_VERSION
    targets: tuple[str, ...]
    device: Device
    accept: bool
    started: str
    steps: tuple[Step, ...] = ()
    exit_code: int | None = None
    machine: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What a user asks of a first run: no target is everything, no minutes no limit; `folder` None is a new one, or the newest to resume.

    Raises BenchmarkError for minutes that are no number.
    """

    root: Path
    targets: tuple[str, ...] = ()
    device: Device = Device.AUTO
    accept: bool = False
    minutes: float | None = None
    folder: Path | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        if self.minutes is not None and not math.isfinite(self.minutes):
            raise BenchmarkError(f"--minutes {self.minutes}: found no finite number; expected one")


def newer_than_measured(tree: Tree, capability: Capability) -> list[Listed]:
    """The pairs that a GPU of this capability may run and that nobody could measure before, for what they need came after MEASURED."""
    newer = {name for name, feature in FEATURES.items() if feature.present(capability) and not feature.present(MEASURED)}
    if newer:
        newer.add(_ENGINE)
    return [each for each in listed(tree.pairs, gpu=True) if newer & set(each.needs)]


def first_run(request: Request, console: Console) -> ExitCode:
    """Do every step, however the one before it ended, and bundle what there is; the worst exit code of all steps.

    Raises BenchmarkError before the first step for a request that cannot be carried out.
    """
    deadline = math.inf if request.minutes is None else time.monotonic() + 60 * request.minutes
    steps = _Steps.of(request, console)
    with interruptible() as interruption:
        code = steps.carry_out(deadline, interruption)
        interruption.over = True
        return worst_of((code, steps.send()))


def print_dry_run(request: Request, console: Console) -> None:
    """What each step would do, and how long it took on this machine before, where it did; nothing is built, measured or written."""
    machine, targets = _machine_and_targets(request)
    plans, notes, _ = plan_only(_settings(request, "run", targets))
    here = [plan.target for plan in plans if not plan.skip]
    for note in notes:
        _say(console, note)
    _say(console, f"1/{_LAST} doctor: look at what is installed and at what would make numbers bad")
    kept = [ceilings_path(machine_key(machine, gpu)) for gpu in (*machine.gpus, None)]
    seconds = [read_document(path, MachineCeilings).seconds for path in kept if path.is_file()]
    _say(console, f"2/{_LAST} peak: measure what the GPUs and the CPU can do at most, {_long(seconds)}")
    for number, command in enumerate(STEPS[2:], start=3):
        before = _seconds_before(request.root, command, here)
        _say(console, f"{number}/{_LAST} {command}: targets that can run here: {len(here)} of {len(plans)}, {_long(before.values())}")
    _say(console, f"    in this order: {', '.join(here)}")
    _say(console, f"{_LAST}/{_LAST} bundle: list what there is to send, and write it as one .zip into {runs_folder(request.root)}")
    if request.minutes is not None:
        _say(console, f"--minutes {request.minutes:g}: a step may take half of what is left, run all of it")


def _long(seconds: Collection[float]) -> str:
    """How long something is known to take, by how long each of its parts took."""
    return f"{sum(seconds):.0f} s when {len(seconds)} were done here before" if seconds else "not timed here yet"


def _say(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True)


def _machine_and_targets(request: Request) -> tuple[Machine, tuple[str, ...]]:
    """The machine, and the targets in the order of their turn: what no GPU so far could run goes first. Raises BenchmarkError."""
    machine, tree = describe_machine(request.root), discover(request.root)
    wanted = [each.pair for each in select(tree, request.targets).selections if not each.is_half]
    if request.device is Device.CPU or not machine.gpus:
        return machine, request.targets
    newer = [each.pair.target for each in newer_than_measured(tree, machine.gpus[0].capability) if each.pair in wanted]
    return machine, (*newer, *(request.targets or tree.directories)) if newer else request.targets


def _settings(request: Request, command: str, targets: tuple[str, ...], folder: Path | None = None) -> Settings:
    """Those of `verify` or `run`, as a part of the first run in `folder`."""
    return Settings(
        command=command,
        targets=targets,
        root=request.root,
        device=request.device,
        accept_regressions=request.accept and command == "run",
        artifacts_dir=folder and folder / command,
        resume=folder is not None and (folder / command / RUN_FILE).is_file(),
    )


def _seconds_before(root: Path, command: str, targets: Sequence[str]) -> dict[str, float]:
    """How long each of `targets` took in the newest of the root's runs that has it."""
    runs = sorted((path for pattern in ("*", "*/*") for path in runs_folder(root).glob(f"{pattern}/{RUN_FILE}")), key=_age, reverse=True)
    found: dict[str, float] = {}
    for path in runs[:_ENOUGH_RUNS]:
        try:
            run, rows = load(path)
        except BenchmarkError:  # of another release
            continue
        if run.settings.get("command") == command:
            found = {row.target: row.seconds for row in rows if row.target in targets} | found
    return found


def _age(path: Path) -> float:
    return path.stat().st_mtime


@dataclass
class _Steps:
    """A first run under way: its folder, which says after every step how far it is."""

    request: Request
    console: Console
    folder: Path
    state: FirstRun
    targets: tuple[str, ...]
    machine: Machine
    is_over: bool = False

    @classmethod
    def of(cls, request: Request, console: Console) -> _Steps:
        """A new one, or the one that is to be resumed. Raises BenchmarkError where it was asked for otherwise, or is none."""
        machine, targets = _machine_and_targets(request)
        asked = FirstRun(
            targets=request.targets,
            device=request.device,
            accept=request.accept,
            started=datetime.now().astimezone().isoformat(timespec="seconds"),
            machine=without_variables(machine.model_dump(mode="json")),
        )
        folder = _folder_of(request)
        if request.resume:
            saved = read_document(folder / _FILE, FirstRun)
            for name in ("device", "accept"):
                if getattr(saved, name) != getattr(asked, name):
                    found = f"--resume: found {name} {getattr(asked, name)}"
                    raise BenchmarkError(f"{found}; expected {getattr(saved, name)}, with which {folder} was begun")
            asked = asked.model_copy(update={"started": saved.started, "steps": saved.steps})
        require_gpu(_settings(request, "run", targets), machine)
        if folder.parent == runs_folder(request.root):
            make_runs_folder(folder.parent)
        make_folder(folder)
        return cls(request, console, folder, asked, targets, machine)

    def carry_out(self, deadline: float, interruption: Interruption) -> ExitCode:
        """Do one step after the other; the worst of their codes."""
        works: dict[StepName, Callable[[float], tuple[int, str]]] = {
            "doctor": self._doctor,
            "peak": self._peak,
            "verify": lambda until: self._suite("verify", until),
            "run": lambda until: self._suite("run", until),
        }
        self._keep()
        for number, name in enumerate(STEPS, start=1):
            if name == "peak" and any((step.name, step.exit_code) == ("peak", ExitCode.GOOD) for step in self.state.steps):
                _say(self.console, f"\n{number}/{_LAST} {name} is done already")
                continue
            _say(self.console, f"\n{number}/{_LAST} {name}")
            begin = time.monotonic()
            left = deadline - begin
            try:
                if left <= 0:
                    code, said = int(ExitCode.BROKEN), f"--minutes {self.request.minutes:g} was over before it began"
                else:
                    code, said = works[name](deadline if name == STEPS[-1] else begin + left / 2)
            except BenchmarkError as error:
                code, said = int(ExitCode.FULL_DISK if fills_disk(error) else error.exit_code), str(error)
                self.is_over = isinstance(error, Interrupted)
            except KeyboardInterrupt:
                code, said, self.is_over = int(interruption.code), "interrupted", True
            self._done(Step(name=name, exit_code=code, seconds=round(time.monotonic() - begin, 1), said=said))
            if self.is_over:
                break
        code = worst_of(step.exit_code for step in self.state.steps)
        self.state = self.state.model_copy(update={"exit_code": int(code)})
        self._keep()
        return code

    def _done(self, step: Step) -> None:
        steps = {each.name: each for each in self.state.steps} | {step.name: step}
        self.state = self.state.model_copy(update={"steps": tuple(steps[name] for name in STEPS if name in steps)})
        self._keep()
        _say(self.console, f"{step.name}: exit {step.exit_code} after {step.seconds:.0f} s: {step.said}")

    def _keep(self) -> None:
        write_whole(self.folder / _FILE, document_text(self.state))

    def _doctor(self, _: float) -> tuple[int, str]:
        findings = examine(self.machine, self.request.root)
        code = ExitCode.UNFIT if unfit(findings) else ExitCode.GOOD
        write_whole(self.folder / _DOCTOR, document_text(examination_of(findings, self.machine, code)))
        print_findings(findings, self.console)
        return int(code), unfit(findings) or "fit to measure on"

    def _peak(self, until: float) -> tuple[int, str]:
        found = measure_peaks(self.request.device, lambda line: _say(self.console, line), until)
        for ceilings, path in found:
            print_ceilings(ceilings, path, self.console)
            write_whole(self.folder / _CEILINGS / path.name, document_text(ceilings))
        late = [name for ceilings, _ in found for name, why in ceilings.missing.items() if why == NO_TIME]
        measured = f"{sum(len(ceilings.ceilings) for ceilings, _ in found)} ceilings"
        return (int(ExitCode.BROKEN), f"{measured}; --minutes left no time for {', '.join(late)}") if late else (0, measured)

    def _suite(self, command: str, until: float) -> tuple[int, str]:
        settings = _settings(self.request, command, self.targets, self.folder)
        if not math.isinf(until):
            settings = settings.model_copy(update={"suite_timeout": round(until - time.monotonic(), 1)})
        with Progress(self.console) as progress:
            outcome = run_suite(settings, progress)
        print_results(outcome.rows, outcome.run, self.console)
        self.is_over = outcome.run.interrupted
        return int(outcome.exit_code), counts_text(outcome.rows)

    def send(self) -> ExitCode:
        """List what would be sent, then write it; how that ended."""
        path = self.folder.with_name(f"{self.folder.name}.zip")
        _say(self.console, f"\n{_LAST}/{_LAST} bundle: what {path.name} has")
        try:
            bundle = bundle_of(dict(self._texts()), private_paths(self.request.root), private_names())
            for line in bundle.listing():
                _say(self.console, line)
            bundle.write(path)
        except BenchmarkError as error:
            _say(self.console, f"bundle: exit {int(error.exit_code)}: {error}")
            return error.exit_code
        _say(self.console, f"{path}")
        if self.state.exit_code or self.is_over:
            _say(self.console, f"to go on: {program()} first-run --resume --artifacts-dir {self.folder}, with the same flags")
        return ExitCode.GOOD

    def _texts(self) -> Iterator[tuple[str, str]]:
        yield _FILE, document_text(self.state)
        if (doctor := self.folder / _DOCTOR).is_file():
            found = read_document(doctor, Examination)
            yield _DOCTOR, document_text(found.model_copy(update={"machine": without_variables(found.machine)}))
        for path in sorted((self.folder / _CEILINGS).glob("*.json")):
            yield f"{_CEILINGS}/{path.name}", document_text(read_document(path, MachineCeilings))
        for command in STEPS[2:]:
            if (self.folder / command / RUN_FILE).is_file():
                yield from ((f"{command}/{name}", text) for name, text in texts_of_run(self.folder / command).items())
        if (self.folder / "run" / RUN_FILE).is_file():
            yield from self._accepted(load(self.folder / "run")[1])

    def _accepted(self, rows: Sequence[PairResult]) -> Iterator[tuple[str, str]]:
        """The files of expectations that rows were accepted into, for one GPU of this machine or several."""
        folders = {Path(row.workload_file).parent for row in rows if any(verdict.accepted for verdict in row.verdicts.values())}
        keys = [gpu_key(self.machine.gpus[:count]) for count in range(1, len(self.machine.gpus) + 1)]
        for folder in sorted(folders):
            for path in (expectations_path(self.request.root / folder, key) for key in keys):
                if path.is_file():
                    yield f"expectations/{folder / path.name}", path.read_text(encoding="utf-8")


def _folder_of(request: Request) -> Path:
    """The folder of a new first run, or of the one to resume. Raises BenchmarkError for one that is not as it must be."""
    runs = runs_folder(request.root)
    if not request.resume:
        name = f"{_PREFIX}{datetime.now().astimezone():%Y%m%d_%H%M%S}"
        folder = (request.folder or runs / name).absolute()
        if folder.is_dir() and any(folder.iterdir()):
            raise BenchmarkError(f"--artifacts-dir {folder} is not empty; expected an absent or empty folder, or --resume")
        return folder
    known = sorted(path.parent for path in runs.glob(f"{_PREFIX}*/{_FILE}"))
    if request.folder is None and not known:
        raise BenchmarkError(f"--resume: found no first run in {runs}; expected one, or its folder as --artifacts-dir")
    return (request.folder or known[-1]).absolute()
