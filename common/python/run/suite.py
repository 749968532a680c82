"""A whole run: plan everything, take the machine, do one row after the other, keep each as soon as it is done."""

from __future__ import annotations

import math
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, Self

from common.python.benchmark_harness import run_pair, shown
from common.python.errors import BenchmarkError, ExitCode, Status, UnfitEnvironment
from common.python.gate.expectations import require_readable
from common.python.gate.outcome import accept, confirmed, exit_code_of, is_to_be_confirmed, red_twice, standing, unconfirmed
from common.python.gate.statistics import load_ahead
from common.python.gate.verdicts import NOISE_COMMAND, Standards, first_gpu
from common.python.machine.ceilings import MachineCeilings, kept_ceilings
from common.python.machine.description import Machine, child_environment, describe_machine, lock
from common.python.machine.doctor import fitness, unfit
from common.python.pairs.changed import touched
from common.python.pairs.discovery import discover
from common.python.pairs.revisions import Past, against, checkout
from common.python.pairs.targets import Selected, Selection, select
from common.python.processes.fork_server import ForkServer
from common.python.profile.explain import why_red
from common.python.profile.runner import profile_red
from common.python.profile.sanitizers import sanitize
from common.python.project import PROJECT_ROOT, import_folders
from common.python.prove.collect import compile_ahead
from common.python.report.llm import Analysis, analyse
from common.python.report.run_folder import RUN_FILE, RunFolder, require_usable
from common.python.results import PairResult, Run
from common.python.run.emulating import emulated
from common.python.run.interruption import Interruption, interruptible
from common.python.run.options import repeat_command
from common.python.run.resuming import edited_since, of_other_gpus, origin_of, require_same_baseline, require_same_place, sources_of
from common.python.session.builds import build_ahead
from common.python.session.planning import Plan, make_plans, require_gpu
from common.python.session.session import Session
from common.python.settings import Device, Settings
from common.python.storage import fills_disk

_REPEATED = (
    Status.WRONG_RESULT,
    Status.INPUT_MODIFIED,
    Status.STREAM_ESCAPE,
    Status.CRASHED,
    Status.LAUNCH_FAILED,
    Status.TIMEOUT,
)
"""Failures that may depend on inputs, so that their seed repeats them."""


class Watcher(Protocol):
    """Who is told how the run goes."""

    def note(self, sentence: str) -> None:
        """Something to know before the first row."""

    def started(self, target: str, index: int, total: int) -> None:
        """Row `index` of `total`, from 1, begins."""

    def phase(self, target: str, text: str) -> None:
        """The row's current phase, such as compiling, or its running estimate while it is timed."""

    def finished(self, row: PairResult) -> None:
        """The row is done."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its document, the rows it was asked for and where they lie."""

    run: Run
    rows: tuple[PairResult, ...]
    folder: Path
    exit_code: ExitCode


def plan_only(settings: Settings) -> tuple[tuple[Plan, ...], tuple[str, ...], Machine]:
    """The plans of a run, notes on them, and the machine, for --dry-run: every file is read and tried, nothing is built, run or written."""
    with ExitStack() as stack:
        request = _Request.of(settings, stack)
        machine = describe_machine(settings.root)
        require_gpu(settings, machine)
        server = stack.enter_context(fork_server(settings, machine))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        return make_plans(request.selections, settings, machine, server, folder), request.notes, machine


def run_suite(settings: Settings, watcher: Watcher) -> Outcome:
    """Do what `settings` asks.

    Raises BenchmarkError before the first row for anything wrong in the request, UnfitEnvironment if another run has the
    machine, Interrupted for a signal. From the first row on nothing is raised: Ctrl-C, SIGTERM, SIGHUP and a full
    disk end the run with what it has.
    """
    deadline = math.inf if settings.suite_timeout is None else time.monotonic() + settings.suite_timeout
    with ExitStack() as stack:
        interruption = stack.enter_context(interruptible())
        request = _Request.of(settings, stack)
        machine = describe_machine(settings.root)
        for note in request.notes:
            watcher.note(note)
        require_usable(settings)  # before the wait for the machine, as nothing that it brings could mend these
        require_gpu(settings, machine)
        if settings.measures:  # what only verifies spoils no time of its own; it has to be left out of nobody's
            gpu = first_gpu(settings, machine)
            purpose = f"benchmark_cli {settings.command}"
            stack.enter_context(lock(gpu.uuid if gpu else "cpu", purpose, min(settings.wait, deadline - time.monotonic())))
        _require_fitness(settings, machine, watcher)
        server = stack.enter_context(fork_server(settings, machine))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plans = make_plans(request.selections, settings, machine, server, scratch)
        standards = Standards(settings, machine, plans)
        folder = RunFolder.create(settings, datetime.now().astimezone().strftime("%Y%m%d_%H%M%S"))
        sources = {plan.target: sources_of(plan, settings.root, request.past) for plan in plans}
        done = _done_before(settings, folder, machine, sources, watcher)
        commit = request.past.commit if request.past else ""
        require_same_baseline(folder.path / RUN_FILE, folder.saved.against if folder.saved else "", commit)
        folder.remove_strays()
        ceilings = _ceilings(plans, machine, watcher) if settings.measures else {}
        run = Run(
            run_id=folder.run_id,
            seed=seed_of(settings, folder),
            settings=settings.model_dump(mode="json"),
            environment=machine.model_dump(mode="json"),
            noise_percent=standards.noise.percent,
            ceilings={device: kept.model_dump(mode="json") for device, kept in ceilings.items()},
            folders=folder.name_folders(plan.target for plan in plans),
            against=commit,
            started=folder.saved.started if folder.saved else _now(),
        )
        folder.write_run(run)
        session = stack.enter_context(Session(settings, server, run.seed, folder.path, folder.log_path))
        session.deadline, session.past, session.ceilings = deadline, request.past, ceilings
        session.begun = _begun_before(plans, folder, machine, sources, watcher) if settings.resume else {}
        suite = _Suite(plans, session, machine, standards, folder, run, watcher, sources)
        return _ended(suite, done, interruption)


def _done_before(
    settings: Settings, folder: RunFolder, machine: Machine, sources: Mapping[str, Mapping[str, str]], watcher: Watcher
) -> dict[str, PairResult]:
    """The rows that need not be made again; what there was no time for is not done, nor is what was edited since.

    `sources` are those of the rows to be, by target. Raises BenchmarkError where they could not stand beside new ones.
    """
    done = folder.completed(settings) if settings.resume else {}
    if folder.saved is not None:
        for note in require_same_place(folder.path / RUN_FILE, folder.saved.environment, machine):
            watcher.note(note)
    done = {target: row for target, row in done.items() if row.status is not Status.TIMEOUT}
    edited = {target: edited_since(row, sources[target]) for target, row in done.items() if target in sources}
    for target, what in edited.items():
        if what:
            watcher.note(f"{target} is done again: {what}")
    return {target: row for target, row in done.items() if not edited.get(target)}


def _begun_before(
    plans: Sequence[Plan], folder: RunFolder, machine: Machine, sources: Mapping[str, Mapping[str, str]], watcher: Watcher
) -> dict[str, PairResult]:
    """By target the rows of sweeps of which some values were measured on the GPUs of this run, and of the same `sources`.

    The watcher is told of others.
    """
    found = folder.begun()
    here = {plan.target: origin_of(plan, machine, {}, "").gpus for plan in plans}
    for target, row in found.items():
        if target in here and row.origin and row.origin.gpus != here[target]:
            watcher.note(f"{target} was begun on {', '.join(row.origin.gpus)}: all of its values are measured here")
        elif target in here and (edited := edited_since(row, sources[target])):
            watcher.note(f"{target} is begun again: {edited}")
            del here[target]
    return {target: row for target, row in found.items() if row.origin and row.origin.gpus == here.get(target)}


def _ended(suite: _Suite, done: Mapping[str, PairResult], interruption: Interruption) -> Outcome:
    """Run what is not done, and write how it ended; where the disk is full, as much of that as there is room for."""
    try:
        interrupted, analysis = suite.run(done)
        code = interruption.code if interrupted else _earned(suite.rows, suite.session.settings)
    except BenchmarkError as error:
        interrupted, analysis, code = True, Analysis(), _of_full_disk(error, suite.watcher)
    interruption.over = True
    run = suite.document.model_copy(update={"ended": _now(), "interrupted": interrupted, "exit_code": int(code), **vars(analysis)})
    run, lost = suite.folder.finish(run)
    if lost:
        code = ExitCode.FULL_DISK
        suite.watcher.note(f"the disk is full: {suite.folder.path} lacks {', '.join(lost)}, or has an older one")
    return Outcome(run, suite.rows, suite.folder.path, code)


def _of_full_disk(error: BenchmarkError, watcher: Watcher) -> ExitCode:
    """The exit code of a run that found no room for a file, of which the watcher is told; any other error is raised again."""
    if not fills_disk(error):
        raise error
    watcher.note(f"the disk is full, and what follows is all that was measured: {error}")
    return ExitCode.FULL_DISK


def _earned(rows: Sequence[PairResult], settings: Settings) -> ExitCode:
    """The exit code of a run that went through."""
    return exit_code_of(
        rows,
        proofs_only=not settings.measures,
        fail_on_inconclusive=settings.fail_on is not None,
        require_expectations=settings.require_expectations,
    )


def seed_of(settings: Settings, folder: RunFolder) -> int:
    """The seed of a run: that of the one it resumes, or the one that --seed names, or a new one.

    Raises BenchmarkError if --seed names another than the rows were made with.
    """
    saved = folder.saved
    if saved and settings.seed not in (None, saved.seed):
        raise BenchmarkError(f"--resume with --seed {settings.seed}; expected {saved.seed}, which made the rows of {folder.path}")
    if saved:
        return saved.seed
    return secrets.randbits(48) if settings.seed is None else settings.seed


def _require_fitness(settings: Settings, machine: Machine, watcher: Watcher) -> None:
    """Raise UnfitEnvironment if numbers would be bad here now; where nothing is timed the watcher is told, no more."""
    if problem := unfit(fitness(machine, settings.root)):
        if settings.measures:
            raise UnfitEnvironment(f"found {problem}; expected a machine that is fit to measure on")
        watcher.note(f"this machine is not fit to measure on: {problem}")


def _ceilings(plans: Sequence[Plan], machine: Machine, watcher: Watcher) -> dict[str, MachineCeilings]:
    """The kept ceilings of every device that something is timed on; of one that has none the watcher is told why."""
    found: dict[str, MachineCeilings] = {}
    for device in sorted({plan.device for plan in plans if plan.timed and not plan.skip}):
        kept, why_not = kept_ceilings(machine, device)
        if kept:
            found[device] = kept
        else:
            watcher.note(why_not)
    return found


@dataclass(frozen=True)
class _Request:
    """What the targets and --against mean: the selections, what to say of them, and the project at the other revision."""

    selections: Sequence[Selection]
    notes: tuple[str, ...]
    past: Past | None

    @classmethod
    def of(cls, settings: Settings, stack: ExitStack) -> Self:
        """The request of `settings`; what it needs on disk is there until `stack` closes."""
        selected = select(discover(settings.root), settings.targets)
        require_readable(selection.pair.workload.parent for selection in selected.selections)
        if settings.changed_since is not None:
            of_change = touched(selected.selections, settings.root, settings.changed_since)
            told = f"--changed-since {settings.changed_since}: {len(of_change)} of {len(selected.selections)} targets"
            selected = Selected(of_change, (*selected.notes, told))
        if settings.against is None:
            return cls(selected.selections, selected.notes, None)
        past = stack.enter_context(checkout(settings.root, settings.against))
        selections, notes = against(selected.selections, past.root)
        return cls(selections, (*selected.notes, *notes), past)


@dataclass(frozen=True)
class _Suite:
    """The rows of one run: each measured and judged, then all of them together, then the red ones once more."""

    plans: Sequence[Plan]
    session: Session
    machine: Machine
    standards: Standards
    folder: RunFolder
    document: Run
    watcher: Watcher
    sources: Mapping[str, Mapping[str, str]]

    @property
    def rows(self) -> tuple[PairResult, ...]:
        """What is known of the rows that were asked for."""
        asked = {plan.target for plan in self.plans}
        return tuple(of_other_gpus([row for row in self.folder.rows if row.target in asked]))

    def run(self, done: Mapping[str, PairResult]) -> tuple[bool, Analysis]:
        """Do every row that is not done, settle what is red, and ask for advice; whether Ctrl-C ended it, and the advice."""
        analysis = Analysis()
        if self.session.settings.measures:
            load_ahead()
        try:
            to_do = [plan for plan in self.plans if plan.target not in done]
            build_ahead(to_do, self.session, self.machine, self._tell_of_builds)
            compile_ahead(to_do, self.session, self._tell_of_builds)
            for index, plan in enumerate(self.plans, start=1):
                if plan.target in done:
                    self.watcher.note(f"{plan.target} is done already")
                    continue
                self.watcher.started(plan.target, index, len(self.plans))
                row = self._of_here(plan, self._row(plan))
                if self.session.settings.accept_regressions:
                    row = accept(row, plan, self.standards, self.document, self.machine)
                try:
                    self.folder.write_pair(row)
                finally:  # what was measured is told even where it cannot be kept
                    self.watcher.finished(row)
            self._settle()
            settings = self.session.settings
            if settings.llm_analysis or settings.llm_dry_run:
                most, send = settings.llm_tokens, not settings.llm_dry_run
                analysis = analyse(self.document, self.rows, self.folder.path, most_tokens=most, send=send)
                for note in analysis.notes:
                    self.watcher.note(note)
        except KeyboardInterrupt:
            return True, analysis
        return False, analysis

    def _of_here(self, plan: Plan, row: PairResult) -> PairResult:
        origin = origin_of(plan, self.machine, self.session.ceilings, self.document.started)
        return row.model_copy(update={"origin": origin, "sources": self.sources[plan.target]})

    def _tell_of_builds(self, text: str) -> None:
        self.watcher.phase("", text)

    def _row(self, plan: Plan) -> PairResult:
        session = self.session
        session.tell = lambda text: self.watcher.phase(plan.target, text)
        session.keep = lambda row: self.folder.write_part(self._of_here(plan, row))
        if time.monotonic() >= session.deadline:
            return _too_late(plan, session)
        if session.settings.sanitize and plan.target not in session.sanitized:
            folder = plan.selection.pair.directory
            session.sanitized |= sanitize([each for each in self.plans if each.selection.pair.directory == folder], session, self.machine)
        session.begin(plan.target)
        row = run_pair(plan, session, self.machine, self.standards)
        if session.settings.emulate:
            session.tell("emulating")
            row = emulated(row, plan, session.settings.root, session.limit_s("prepare"))
        reason, multiplier = row.reason, session.settings.timeout_multiplier
        if row.status is Status.TIMEOUT and row.sides and time.monotonic() >= session.deadline:
            return row.model_copy(update={"reason": f"--suite-timeout {session.settings.suite_timeout:g} was over: {reason}"})
        if row.status is Status.TIMEOUT and multiplier != 1:
            reason = f"{reason} (--timeout-multiplier {multiplier:g})"
        if row.status in _REPEATED:
            reason = f"{reason}; repeat: {repeat_command(session.settings, row, self.document.seed)}"
        return row.model_copy(update={"reason": reason})

    def _settle(self) -> None:
        """Keep red only what stands among all gated figures, and what a second measurement, alone and in reversed order, agrees with."""
        for row, settled in zip(self.rows, standing(self.rows), strict=True):
            if settled != row:
                self.folder.write_pair(settled)
        plans = {plan.target: plan for plan in self.plans}
        red = [row for row in self.rows if is_to_be_confirmed(row)]
        self.session.reversed = True
        for index, row in enumerate(red, start=1):
            self.watcher.note(f"{row.target} is red: it is measured once more")
            self.watcher.started(row.target, index, len(red))
            settled = self._confirmed(row, plans[row.target])
            self.folder.write_pair(settled)
            self.watcher.finished(settled)
        measured_again = {row.target for row in red if self.session.settings.command != NOISE_COMMAND}
        for row in self.rows:  # after the last of the timings
            if row.target in measured_again and red_twice(row) and time.monotonic() < self.session.deadline:
                self.folder.write_pair(self._explained(row, plans[row.target]))

    def _explained(self, row: PairResult, plan: Plan) -> PairResult:
        """A row that is red twice, with the counters that may tell why; it is profiled for them where nobody said what to profile."""
        shape, session = red_twice(row)[0], self.session
        if session.settings.profile is None and plan.device == "cuda":
            session.tell = lambda text: self.watcher.phase(plan.target, text)
            self.watcher.note(f"{row.target} is red twice: it is profiled")
            row = profile_red(row, plan, shape, session)
        elif shape != next(iter(row.timings)):  # at which it was profiled
            return row
        return row.model_copy(update={"notes": (*row.notes, *why_red(row, shape, self.standards.accepted_counters(plan, shape)))})

    def _confirmed(self, row: PairResult, plan: Plan) -> PairResult:
        if time.monotonic() < self.session.deadline:
            second = self._row(plan)
            self.folder.write_second(second)
            if time.monotonic() < self.session.deadline or second.status is row.status:
                return confirmed(row, second)
        return unconfirmed(row, "--suite-timeout left no time to measure it again")


def _too_late(plan: Plan, session: Session) -> PairResult:
    return PairResult(
        target=plan.target,
        workload_file=shown(plan.selection.pair.workload, session),
        status=Status.TIMEOUT,
        reason=f"--suite-timeout {session.settings.suite_timeout:g} was over before its turn came; expected it to start by then",
    )


def fork_server(settings: Settings, machine: Machine) -> ForkServer:
    """The server that forks a run's worker processes. Its own process starts with the first worker."""
    device = "cuda" if machine.gpus and settings.device is not Device.CPU else "cpu"
    return ForkServer(child_environment(PROJECT_ROOT, device, packages=import_folders(settings.root)))


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
