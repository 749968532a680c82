"""The recipe of one row: build, verify, time. Read it top to bottom; every step is a module of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import nvtx

from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.gate.predicted import card_from, terms_of_timing
from common.python.gate.statistics import rungs_between
from common.python.gate.verdicts import Standards
from common.python.machine.description import Machine
from common.python.machine.roofline import with_shares
from common.python.measure.process_pairs import Measured, Measurement
from common.python.measure.serving import ServingMeasurement, saturations_in, verify_serving
from common.python.pairs.changed import changed_files
from common.python.pairs.predictions import card_for, predictions_of, require_predictions
from common.python.pairs.revisions import unlike
from common.python.pairs.sources import same_code
from common.python.pairs.workload import Shape
from common.python.processes import messages
from common.python.profile.runner import Profiling, profile_row
from common.python.project import PROJECT_ROOT
from common.python.prove.collect import add_counters, findings, fork_watched, kernel_uses, proofs_of, read_evidence, watch_evidence
from common.python.prove.compiled import compiler_notes, too_long
from common.python.prove.proofs import Seen, nothing
from common.python.results import BASELINE, OPTIMIZED, Check, PairResult, Setup, SideResult
from common.python.session.builds import build_row
from common.python.session.planning import Plan, uses_compiler
from common.python.session.serving import Traces
from common.python.session.session import Judging, Session, SideAtWork, entries_text
from common.python.wording import bytes_text

_ABREAST = 4
"""Sides that are verified at a time at small shapes, which cost waiting alone. More would share the GPU by turns for longer than a stream
is held. Work that is not on its stream may get no turn before it is looked for; where sides are timed they are verified alone."""


MANY_BLOCKS = 32
"""Of memory that a step on a CPU allocates beyond the other side's before a note says so; PyTorch takes one for each result."""

_SLOW_CALL_S = 1.0


@dataclass
class _Row:
    """What is known of a row so far."""

    plan: Plan
    setups: dict[str, Setup] = field(default_factory=dict)
    checks: dict[str, list[Check]] = field(default_factory=dict)
    measured: dict[str, Measured] = field(default_factory=dict)
    evidence: dict[str, dict[str, Seen]] = field(default_factory=dict)
    profiling: Profiling = field(default_factory=Profiling)
    of_references: set[str] = field(default_factory=set)
    allocated: dict[str, messages.Weighed] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    compiled_s: float = 0.0
    begin: float = field(default_factory=time.monotonic)

    def result(self, session: Session, status: Status = Status.PASSED, reason: str = "") -> PairResult:
        """The row as it is known by now."""
        return _result(self, session, status, reason, time.monotonic() - self.begin)

    def to_measure(self, session: Session) -> Iterator[str]:
        """The named shapes that are not measured yet. Between the values of a sweep, which may take minutes each, the row is kept."""
        for name in [name for name in self.plan.timed if name not in self.measured]:
            if self.measured and session.settings.sweep:
                session.keep(self.result(session))
            yield name

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A phase of the row: an NVTX range for an outside profiler, and seconds to be reported."""
        begin = time.monotonic()
        try:
            with nvtx.annotate(name):
                yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - begin


def run_pair(plan: Plan, session: Session, machine: Machine, standards: Standards) -> PairResult:
    """Everything about one row. Whatever a side does ends in the row's status; nothing a side does is raised."""
    row = _Row(plan, checks={side: [] for side in plan.sides}, evidence={side: nothing("it was not built") for side in plan.sides})
    row.measured = already_measured(plan, session.begun.pop(plan.target, None))
    status, reason = Status.PASSED, ""
    with nvtx.annotate(plan.target):
        try:
            with row.phase("build"):
                build_row(plan, session, machine)
            with row.phase("prove"):
                row.evidence = read_evidence(plan, session)
                require_proofs(row)
            if plan.skip:
                raise SideFailure(Status.SKIPPED, plan.skip)
            if found := [said.finding for said in session.sanitized.get(plan.target, ()) if said.finding]:
                raise SideFailure(Status.WRONG_RESULT, found[0])
            with Judging(session, plan) as judging:
                row.of_references = judging.notes
                if plan.serves:
                    serve(row, session, judging, standards)
                else:
                    compute(row, session, machine, judging, standards)
            if session.settings.profiles and row.measured and not plan.serves:
                with row.phase("profile"):
                    profile(row, session, machine)
                    require_proofs(row)
        except SideFailure as failure:
            status, reason = failure.status, failure.reason
    return with_predictions(judge(row.result(session, status, reason), plan, standards), plan, session)


def already_measured(plan: Plan, begun: PairResult | None) -> dict[str, Measured]:
    """What a run that is resumed measured of the row's values, with the checks that it made of all of them."""
    found: dict[str, Measured] = {}
    if begun is None:
        return found
    for name, timing in begun.timings.items():
        if plan.timed.get(name) == timing.shape:
            checks = {side: [] if found else list(begun.sides[side].checks) for side in plan.sides}
            peaks = {side: begun.sides[side].peak_memory_bytes or 0 for side in plan.sides}
            found[name] = Measured(timing, checks, peaks, begun.metrics)
    return found


def compute(row: _Row, session: Session, machine: Machine, judging: Judging, standards: Standards) -> None:
    """Verify, prove and time a row whose steps compute outputs. Raises SideFailure."""
    with ExitStack() as until_watched:
        watched = fork_watched(row.plan, session, until_watched)
        with row.phase("verify"):
            verify(row, session, judging)
        with row.phase("prove"):
            watch_evidence(row.plan, session, machine, row.evidence, watched)
            require_proofs(row)
        require_past(row, session)
    if row.plan.only_checked:
        raise SideFailure(Status.SKIPPED, row.plan.only_checked)
    if session.settings.measures:
        with row.phase("measure"):
            measure(row, session, judging, standards)
        require_past(row, session)


def serve(row: _Row, session: Session, judging: Judging, standards: Standards) -> None:
    """Verify and time a row whose steps serve requests. Raises SideFailure."""
    with Traces(session, row.plan, judging) as traces:
        with row.phase("verify"):
            for side in row.plan.sides:
                row.checks[side], row.setups[side] = verify_serving(row.plan, session, traces, side)
        if session.settings.measures:
            require_past(row, session)
            with row.phase("measure"):
                traces.saturations |= saturations_in(measured.timing for measured in row.measured.values())
                for name in row.to_measure(session):
                    row.measured[name] = ServingMeasurement(session, row.plan, name, standards, judging, traces).run()
            require_past(row, session)


def verify(row: _Row, session: Session, judging: Judging) -> None:
    """Hold every side against the reference at every shape, on two seeds that it has not seen. Raises SideFailure."""
    plan = row.plan
    shapes: list[Shape] = [*plan.described.check_at, *plan.timed.values()]
    questions = [_Question(shape, session.new_seed(), (session.new_seed(), session.new_seed())) for shape in shapes]
    small, timed = questions[: len(plan.described.check_at)], questions[len(plan.described.check_at) :]
    with ExitStack() as until_verified:
        workers = {side: until_verified.enter_context(session.fork_side(plan, side)) for side in plan.sides}
        for worker in workers.values():
            worker.begin_load()
        for worker in workers.values():
            worker.finish_load()
        # On the CPU they have one core between them, and a limit each; of several ranks, collectives would wait for each other's turns.
        abreast = _ABREAST if plan.device == "cuda" and plan.ranks == 1 else 1
        for first in range(0, len(plan.sides), abreast):
            group = plan.sides[first : first + abreast]
            for question in small:
                session.tell(f"verifying {', '.join(group)} at {entries_text(question.shape)}")
                judging.require_reference(question.shape, question.prepare_seed, question.check_seeds[0])
                _ask({side: workers[side] for side in group}, question, row, session, judging)
            for side in group:  # alone, for the seconds of their set-up are kept, and what they hold of the GPU is much
                for question in timed if row.plan.timed else ():
                    session.tell(f"verifying {side} at {entries_text(question.shape)}")
                    _ask({side: workers[side]}, question, row, session, judging)
                if timed and row.plan.timed and plan.device == "cpu" and plan.ranks == 1:
                    _count_allocations(side, workers[side], row, session)
                workers[side].begin_close()


@dataclass(frozen=True)
class _Question:
    """What sides are verified with: inputs at a shape, and the seeds of the calls on them."""

    shape: Shape
    prepare_seed: int
    check_seeds: tuple[int, int]


def _ask(workers: Mapping[str, SideAtWork], question: _Question, row: _Row, session: Session, judging: Judging) -> None:
    """Have sides prepare and check themselves side by side, and judge their answers. Raises SideFailure, of the first side that fails."""
    for worker in workers.values():
        worker.begin_prepare(question.shape, question.prepare_seed, question.check_seeds[0])
    prepared = {side: worker.finish_prepare() for side, worker in workers.items()}
    for worker in workers.values():
        worker.begin(messages.Check(seeds=list(question.check_seeds), prefix=session.dump_prefix()))
    for side, worker in workers.items():
        checked = worker.finish(messages.Checked, session.limit_s("prepare"))
        row.checks[side] += judging.judge(side, question.shape, question.prepare_seed, checked.calls, timed=False)
        row.setups[side] = _setup(session.builds.get(str(row.plan.file(side))), worker.load_s, prepared[side], checked)
        if checked.interpreted and row.plan.device == "cpu":
            row.plan = replace(row.plan, timed={}, was_interpreted=True)
    compiling = [row.setups[side] for side in workers if uses_compiler(row.plan.file(side))]
    # Side by side the slowest took all that time, and the sum of them more than there was.
    row.compiled_s += max((setup.prepare_s + setup.first_call_s for setup in compiling), default=0.0)


def _count_allocations(side: str, worker: SideAtWork, row: _Row, session: Session) -> None:
    """Note how much memory a step takes anew, in one call more, which nobody times: who fails in it alone has failed in nothing."""
    if row.setups[side].first_call_s < _SLOW_CALL_S:
        with suppress(SideFailure):
            row.allocated[side] = worker.ask(messages.Weigh(), messages.Weighed, session.limit_s("prepare"))


def _setup(built: messages.BuildDone | None, load_s: float, prepared: messages.Prepared, checked: messages.Checked) -> Setup:
    return Setup(
        build_s=built.seconds if built else 0.0,
        cached=built.cached if built else False,
        load_s=load_s,
        prepare_s=prepared.seconds,
        first_call_s=checked.first_call_s,
    )


def require_past(row: _Row, session: Session) -> None:
    """Raise SideFailure, UNPROVEN, if the side of --against's revision imported what is not of that: its time would be another's."""
    past, named = session.past, session.settings.against
    here = sorted(file for file in session.imported.get(BASELINE, ()) if past and not file.is_relative_to(past.then))
    if past is None or not here:
        return
    changed = changed_files(session.settings.root, past.commit)
    if wrong := [file for file in here if file.resolve() in changed]:
        found = f"found that it imports {wrong[0].relative_to(past.now)}, which is not what it was"
        expected = "expected modules beside it, or of the package or project that holds the root, which are taken from that revision"
        raise SideFailure(Status.UNPROVEN, f"{row.plan.file(BASELINE).name} at {named}: {found}; {expected}")


def require_proofs(row: _Row) -> None:
    """Raise SideFailure, UNPROVEN, for the first claim that what is known so far shows to be wrong."""
    for proof in proofs_of(row.plan, row.evidence):
        if proof.state == "failed":
            raise SideFailure(Status.UNPROVEN, f"{row.plan.file(proof.side).name}: found {proof.detail}; expected `{proof.claim}`")


def measure(row: _Row, session: Session, judging: Judging, standards: Standards) -> None:
    """Time the row at every shape that is timed on this machine. Raises SideFailure."""
    for name in row.to_measure(session):
        measured = Measurement(session, row.plan, name, standards, judging).run()
        if ceilings := session.ceilings.get(row.plan.device):
            files = {side: row.plan.file(side).name for side in row.plan.sides}
            measured.timing = with_shares(measured.timing, row.plan.work[name], ceilings, files)
        row.measured[name] = measured


def profile(row: _Row, session: Session, machine: Machine) -> None:
    """Run the row under the profilers; what they count is evidence for its claims."""
    row.profiling = profile_row(row.plan, session)
    chosen = "--kwargs" if session.settings.kwargs else "--sweep" if session.settings.sweep else ""
    elsewhere = f"it is about the workload's own shape, and {chosen} chose another" if chosen else ""
    for side, counters in row.profiling.counters.items():
        add_counters(row.evidence[side], machine, counters, elsewhere)


def judge(row: PairResult, plan: Plan, standards: Standards) -> PairResult:
    """The row with the gate's verdict on each of its timings that may be gated, and why the others are not."""
    verdicts = {name: standards.verdict(plan, name, timing) for name, timing in row.timings.items()}
    ungated = {name: standards.exempts(plan, name) for name, verdict in verdicts.items() if verdict is None}
    return row.model_copy(update={"verdicts": {name: verdict for name, verdict in verdicts.items() if verdict}, "ungated": ungated})


def with_predictions(row: PairResult, plan: Plan, session: Session) -> PairResult:
    """The row with what its pair predicted beside what was measured, at its own shapes on a GPU; a line that is wrong becomes a note.

    The constants are those of the GPU model's card, so that one row is not held to another's figures; without a card this machine's own.
    """
    chosen, pair = session.settings, plan.selection.pair
    is_own = not (chosen.kwargs or chosen.sweep or chosen.against or chosen.cold_start)
    if not row.timings or plan.device != "cuda" or not plan.gpus or not is_own:
        return row
    gpu, kept = plan.gpus[0].name, session.ceilings.get("cuda")
    try:
        require_predictions(pair.workload, pair.sides, plan.described.timed)
        card = card_for(gpu) or (card_from(kept) if kept else None)
        predictions = predictions_of(pair.workload, pair.sides)
        terms = {name: terms_of_timing(row, name, predictions, gpu, card) for name in row.timings}
    except BenchmarkError as error:
        return row.model_copy(update={"notes": (*row.notes, f"predictions are not compared: {error}")})
    return row.model_copy(update={"predictions": {name: found for name, found in terms.items() if found}})


def _result(row: _Row, session: Session, status: Status, reason: str, seconds: float) -> PairResult:
    plan = row.plan
    measured = row.measured if status is Status.PASSED else {}  # no figure of a row whose claims its counters refute
    beyond_s = seconds - row.compiled_s if row.compiled_s and row.measured else None
    starting_s = sum(each.starting_s for each in row.measured.values())
    return PairResult(
        target=plan.target,
        workload_file=shown(plan.selection.pair.workload, session),
        idea=idea_of(plan),
        status=status,
        reason=reason,
        sides={side: _side_result(row, session, side) for side in plan.sides},
        timings={name: each.timing for name, each in measured.items()},
        proofs=proofs_of(plan, row.evidence),
        metrics=next((each.metrics for each in measured.values()), {}),
        assets=plan.described.assets,
        notes=(
            *_notes(plan, session, status),
            *_of_other_shapes(row, session),
            *(f"{plan.selection.pair.sides[side].name} is left out: {why}" for side, why in plan.left_out.items()),
            *(plan.without_room.values() if plan.timed else ()),
            *_ranks(plan),
            *_found(row, session),
            *_sanitizer_notes(plan, session, reason),
            *too_long(plan, session.settings, row.compiled_s, beyond_s, row.phases, starting_s),
        ),
        seconds=seconds,
        phases=row.phases,
        first_compilation_s=row.compiled_s or None,
        beyond_compilation_s=beyond_s,
    )


def _side_result(row: _Row, session: Session, side: str) -> SideResult:
    checks = list(row.checks[side])
    peaks = []
    for measured in row.measured.values():
        checks += measured.checks[side]
        peaks.append(measured.peak_memory_bytes.get(side, 0))
    return SideResult(
        file=shown(row.plan.file(side), session),
        imports=_changed_imports(row, session, side),
        directives=row.plan.side_directives[side].as_text(),
        setup=row.setups.get(side),
        peak_memory_bytes=max(peaks) if peaks and row.plan.device == "cuda" else None,
        kernels=tuple(kernel_uses(row.evidence[side])),
        profile=row.profiling.of(side),
        checks=tuple(checks),
    )


def _changed_imports(row: _Row, session: Session, side: str) -> tuple[str, ...]:
    """Of --against, the project's files that this side imported and that are not the other's, by their paths from the root."""
    past = session.past
    if past is None or side not in session.imported:
        return ()
    changed = {past.as_now(file) if file.is_relative_to(past.then) else file: file for file in session.imported[side]}
    files = [changed[file] for file in _unlike(session) if file in changed and changed[file] != row.plan.file(side)]
    of_past = f" at {session.settings.against}"
    return tuple(
        f"{os.path.relpath(file, past.root)}{of_past}" if file.is_relative_to(past.then) else os.path.relpath(file, session.settings.root)
        for file in files
    )


def idea_of(plan: Plan) -> str:
    """The optimized side's idea. For a ladder the number of its steps comes first: no single idea explains the gain of all steps."""
    rungs = rungs_between(plan.sides)
    side = OPTIMIZED if rungs else plan.sides[min(1, len(plan.sides) - 1)]
    idea = plan.side_directives[side].idea
    return f"a ladder of {len(rungs) + 1} steps; the last: {idea}" if rungs else idea


def _notes(plan: Plan, session: Session, status: Status) -> tuple[str, ...]:
    if plan.serves and session.settings.profiles:
        return ("a serving row is not profiled: its step waits for clients",)
    if status is Status.PASSED and plan.timed and len(plan.sides) > 1 and _are_alike(plan, session):
        return ("both sides are the same code: their difference is noise by construction",)
    if not session.settings.measures or plan.timed or plan.skip:
        return ()
    if plan.interpreted:
        return ("checked in Triton's interpreter, which says nothing of speed: not timed on a CPU",)
    if plan.is_unmeasured:
        return (f"checked, and not measured: its goal is {plan.described.goal}, which is a GPU's, and this row has none",)
    if plan.ranks > 1 and plan.described.cpu_at:
        return (f"checked, and not timed: {plan.ranks} ranks need a core each",)
    return ("checked, and by its workload not timed on a CPU",)


def _of_other_shapes(row: _Row, session: Session) -> tuple[str, ...]:
    """That what was timed is not the pair's own shape."""
    entries = entries_text(session.settings.kwargs)
    return (f"timed at {entries}, by --kwargs: not the pair's own shape, so not gated",) if entries and row.measured else ()


def _ranks(plan: Plan) -> tuple[str, ...]:
    if plan.ranks == 1 or plan.skip or plan.only_checked:
        return ()
    return (f"each side ran in {plan.ranks} processes: {'NCCL, a GPU each' if plan.device == 'cuda' else 'gloo, on the CPU'}",)


def _found(row: _Row, session: Session) -> tuple[str, ...]:
    compiled = compiler_notes(row.plan, session.compiled)
    return (*sorted(row.of_references), *findings(row.plan, row.evidence), *compiled, *_allocations(row), *row.profiling.notes)


def _allocations(row: _Row) -> Iterator[str]:
    """A sentence on the sides that take memory anew in each step, much oftener than another, and do not say that this is the idea."""
    fewest = min((weighed.blocks for weighed in row.allocated.values()), default=0) if len(row.allocated) > 1 else 0
    many = {
        side: weighed
        for side, weighed in row.allocated.items()
        if weighed.blocks >= fewest + MANY_BLOCKS and "alloc" not in row.plan.side_directives[side].allows
    }
    if many:
        told = ", ".join(f"{side} {weighed.blocks} times, {bytes_text(weighed.allocated_bytes)}" for side, weighed in many.items())
        yield f"each step allocates memory anew: {told}; `allows: alloc` says that this is the idea"


def _sanitizer_notes(plan: Plan, session: Session, reason: str) -> tuple[str, ...]:
    """What each sanitizer says of the row, but for a finding that is the row's reason."""
    said = session.sanitized.get(plan.target, ())
    return tuple(each.note or f"sanitize: {each.finding}" for each in said if each.note or each.finding != reason)


def _are_alike(plan: Plan, session: Session) -> bool:
    """Whether the baseline and the optimized side are one library, or the same text; of --against, with all that they imported."""
    files = [plan.file(side) for side in (BASELINE, OPTIMIZED)]
    libraries = [session.builds[str(file)].library for file in files if str(file) in session.builds]
    if len(libraries) == len(files) and len(set(libraries)) == 1:
        return True
    if session.past is None:
        return same_code(*files)
    return all(side in session.imported for side in (BASELINE, OPTIMIZED)) and not libraries and not _unlike(session)


def _unlike(session: Session) -> list[Path]:
    """Of --against, the project's files that its sides imported, themselves among them, and that differ between the two."""
    found = [sorted(session.imported.get(side, ())) for side in (BASELINE, OPTIMIZED)]
    return unlike(session.past, *found) if session.past else []


def shown(path: Path, session: Session) -> str:
    """`path` as a result names it: from the root that holds it, and at which revision that is not this one."""
    root = session.root_of(path)
    text = str(path)
    for folder in (str(root), str(PROJECT_ROOT)):
        text = text.removeprefix(folder + "/")
    return f"{text} at {session.settings.against}" if session.past and root == session.past.root else text
