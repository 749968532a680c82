"""What a run holds while it measures: settings, fork server, seeds, folders; and the two kinds of child as the recipe sees them."""

from __future__ import annotations

import itertools
import math
import os
import random
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psutil

from common.python.errors import SideFailure, Status
from common.python.machine.ceilings import MachineCeilings
from common.python.machine.description import cache_folder
from common.python.pairs.revisions import Past
from common.python.pairs.workload import Shape
from common.python.processes import messages
from common.python.processes.fork_server import ANY_CORE, Child, ForkServer
from common.python.processes.messages import Answer, Request
from common.python.processes.ranks import RankGroup, most_of
from common.python.results import Check, CompilerFinding, PairResult
from common.python.session.planning import Plan
from common.python.settings import Settings
from common.python.wording import bytes_text

T = TypeVar("T", bound=Answer)

BUILD_CACHE = cache_folder() / "build"

_SHARED_MEMORY = Path("/dev/shm")


def sweep(folder: Path = _SHARED_MEMORY) -> None:
    """Remove the outputs that runs left in shared memory when they were killed: their folders bear their process ids."""
    for left in folder.glob("benchmark_*_*"):
        owner = left.name.split("_")[1]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(left, ignore_errors=True)


def folder_in_memory() -> tempfile.TemporaryDirectory[str]:
    """A new folder in shared memory. Where a killed run leaves it, `sweep` finds it."""
    return tempfile.TemporaryDirectory(prefix=f"benchmark_{os.getpid()}_", dir=_SHARED_MEMORY)


@dataclass(frozen=True)
class Sanitized:
    """What one sanitizer found in a row's CUDA sides, in a sentence; or, where it found nothing or did not run, a note of that."""

    finding: str = ""
    note: str = ""


class Session:
    """One run's means. `tell` takes what the row in flight is at, `logs` gives the folder of a target's side; inputs lie in `folder`."""

    def __init__(self, settings: Settings, server: ForkServer, seed: int, folder: Path, logs: Callable[[str, str], Path]) -> None:
        self.settings = settings
        self.past: Past | None = None  # the project as it was at the revision of --against
        self.reversed = False  # of the order of sides: in a second measurement, to confirm a first
        self.server = server
        self.logs = logs
        self.tell: Callable[[str], None] = lambda _: None
        self.keep: Callable[[PairResult], None] = lambda _: None  # a row of which some values of a sweep are measured
        self.begun: dict[str, PairResult] = {}  # by target such rows of the run that this one resumes
        self.deadline = math.inf  # of the whole suite, on the monotonic clock
        self.ceilings: Mapping[str, MachineCeilings] = {}  # by device; none where none are kept
        self.builds: dict[str, messages.BuildDone] = {}
        self.sanitized: dict[str, tuple[Sanitized, ...]] = {}  # by target, one a tool
        self.imported: dict[str, set[Path]] = {}  # of the row in flight, with --against: the project's files that each side imported
        self.compiled: dict[str, list[CompilerFinding]] = {}  # of the row in flight: what torch.compile did to each side, in all processes
        self._seed = seed
        self._random = random.Random(seed)
        self._times: Counter[str] = Counter()  # that each target was begun
        self._until_end = ExitStack()
        self._with_compiler: ForkServer | None = None
        self._dumps = 0
        self._rendezvous = 0
        sweep()
        # Outputs go to the referee through memory; input files lie on the disk that is being measured.
        self._memory = folder_in_memory()
        self._disk = tempfile.TemporaryDirectory(prefix="inputs_", dir=folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._until_end.close()
        self._memory.cleanup()
        self._disk.cleanup()

    @property
    def inputs_folder(self) -> Path:
        """Where children put their input files."""
        return Path(self._disk.name)

    def root_of(self, path: Path) -> Path:
        """The root that `path` lies in: that of the run, or the same at another revision."""
        return self.past.root if self.past and path.is_relative_to(self.past.root) else self.settings.root

    def limit_s(self, phase: str) -> float:
        """Seconds that a request of `phase` may take: its own limit, or what is left of the suite's."""
        return max(0.001, min(self.settings.timeout_s(phase), self.deadline - time.monotonic()))

    def begin(self, target: str) -> None:
        """Draw the seeds of `target` from here on, each row from its own, so that it repeats alone; others when it is measured again."""
        self._times[target] += 1
        self.compiled, self.imported = {}, {}
        self._random = random.Random(f"{self._seed} {target} {self._times[target]}")

    def new_seed(self) -> int:
        """A seed that no side has seen."""
        return self._random.getrandbits(48)

    def dump_prefix(self) -> str:
        """A name in shared memory that outputs of one request may start with."""
        self._dumps += 1
        return f"{self._memory.name}/{self._dumps}"

    def core_for(self, plan: Plan) -> int:
        """The core that the CPU sides of a row share, so that like is timed with like; the harness has the others."""
        return max(os.sched_getaffinity(0)) if plan.device == "cpu" else ANY_CORE

    def cores_for(self, plan: Plan, rank: int) -> tuple[int, ...]:
        """The cores of one of several ranks: on the CPU one, where there are enough one of its own; else an even share. None: any."""
        cores = sorted(os.sched_getaffinity(0))
        if plan.ranks == 1:
            return ()
        if plan.device == "cpu":
            return (cores[-1 - rank % len(cores)],)
        share = len(cores) // plan.ranks
        return tuple(cores[rank * share : (rank + 1) * share])

    def new_rendezvous(self) -> str:
        """A new path in shared memory, by which a side's ranks find each other: names of files that begin so are theirs."""
        self._rendezvous += 1
        return f"{self._memory.name}/rendezvous_{self._rendezvous}"

    def is_cold(self, plan: Plan) -> bool:
        """Whether every sample of a row is a fresh process: its goal asks for that, or the run does."""
        return plan.is_cold or self.settings.cold_start

    def is_sustained(self, plan: Plan) -> bool:
        """Whether a row is timed by calls back to back for a second or more: its goal asks for that, or the run does."""
        return plan.is_sustained or self.settings.sustained

    def starts_triton(self, plan: Plan, side: str) -> bool:
        """Whether Triton is there before a side is loaded. A cold start has that to do itself, and its interpreter must not find it."""
        return plan.launches_triton(side) and not self.is_cold(plan)

    def starts_compiler(self, plan: Plan, side: str) -> bool:
        """Whether torch's compiler is there before a side is loaded. A cold start has that to do itself."""
        return plan.compiles(side) and not self.is_cold(plan)

    def starts(self, plan: Plan, side: str) -> list[messages.Started]:
        """All that is there before a side is loaded, which each of its processes would else import anew."""
        meshes = plan.uses_meshes(side) and not self.is_cold(plan) and not plan.interpreted
        found: dict[messages.Started, bool] = {
            "triton": self.starts_triton(plan, side),
            "compiler": self.starts_compiler(plan, side) and not plan.interpreted,  # which would be there before its interpreter
            "meshes": meshes,
        }
        return [name for name, is_started in found.items() if is_started]

    def _server_for(self, plan: Plan, side: str) -> ForkServer:
        """The fork server for workers of `side`. The compiler brings Triton, without its interpreter, so it has a server of its own."""
        if not {"compiler", "meshes"} & set(self.starts(plan, side)):
            return self.server
        if self._with_compiler is None:
            self._with_compiler = self._until_end.enter_context(self.server.for_compiled_sides())
        return self._with_compiler

    def caches_of(self, plan: Plan, side: str) -> str:
        """The folder of the compile caches that the processes of a compiled side share in this run; "" for any other side."""
        if not self.starts_compiler(plan, side):
            return ""
        folder = self.inputs_folder / "compile_caches" / re.sub(r"[:/]", "_", plan.target) / side
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def fork_side(self, plan: Plan, side: str, *, cold: bool = False, watched: bool = False) -> SideAtWork:
        """A fresh worker for `side`, which has loaded nothing yet, one a rank; `cold`: compile caches are empty; `watched`: by CUPTI."""
        folder = self.logs(plan.target, side)
        server, starts = self._server_for(plan, side), self.starts(plan, side)
        with ExitStack() as until_all:
            children = []
            for rank in range(plan.ranks):
                log = folder / (f"log_rank{rank}.txt" if rank else "log.txt")
                cores = self.cores_for(plan, rank)
                core = cores[0] if cores and plan.device == "cpu" else self.core_for(plan)
                child = server.fork("worker", log, core, cores=cores, starts=starts)
                children.append(until_all.enter_context(child))
            until_all.pop_all()
        return SideAtWork(RankGroup(children), self, plan, side, cold, watched)

    def start_side(self, plan: Plan, side: str, *, cold: bool = False) -> SideAtWork:
        """A fresh worker that has loaded `side`. Raises SideFailure."""
        with ExitStack() as until_loaded:
            worker = until_loaded.enter_context(self.fork_side(plan, side, cold=cold))
            worker.begin_load()
            worker.finish_load()
            until_loaded.pop_all()
        return worker


class SideAtWork:
    """The workers of one side, a rank each; their failures name its file. What is begun must be finished before anything else is asked."""

    def __init__(self, group: RankGroup, session: Session, plan: Plan, side: str, cold: bool, watched: bool) -> None:
        self._group = group
        self._session = session
        self._plan = plan
        self._side = side
        self._cold = cold
        self._watched = watched
        self._begun: Request | None = None
        self.load_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._begun is not None:  # nobody will wait for the answer
            self._group.kill()
        self._group.__exit__(kind, error, trace)

    @property
    def ranks(self) -> int:
        """How many processes the side runs in."""
        return len(self._group)

    def ask(self, request: Request, expected: type[T], seconds: float) -> T:
        """The workers' answer. Raises SideFailure."""
        self.begin(request)
        return self.finish(expected, seconds)

    def begin_close(self) -> None:
        """Let the worker end while others do."""
        self._group.begin_close()

    def begin_open(self) -> None:
        """Ask for a context on the GPU."""
        self.begin(messages.Open(choose=False))

    def finish_open(self) -> None:
        """Wait until it is made. Raises SideFailure."""
        self.finish(messages.Ready, self._session.limit_s("prepare"))

    def choose_stream(self) -> None:
        """Have the workers choose the streams they work on, which they would else do as they load. Raises SideFailure."""
        self.ask(messages.Open(choose=True), messages.Ready, self._session.limit_s("prepare"))

    def begin_load(self) -> None:
        """Ask for the workload and the side to be imported."""
        built = self._session.builds.get(str(self._plan.file(self._side)))
        request = messages.Load(
            workload=str(self._plan.selection.pair.workload),
            side=str(self._plan.file(self._side)),
            library=built.library if built else "",
            device=self._plan.device,
            interpret=self._plan.interpreted,
            folder=str(self._session.inputs_folder),
            cold=self._cold,
            caches="" if self._cold and not self._watched else self._session.caches_of(self._plan, self._side),
            triton=self._session.starts_triton(self._plan, self._side),
            watched=self._watched,
            cores=list(self._plan.cores),
            digest=self._plan.digests[self._side],
            rendezvous=self._session.new_rendezvous() if self.ranks > 1 else "",
            past=self._session.past,
        )
        self.begin(request)

    def finish_load(self) -> None:
        """Wait until they are. Raises SideFailure."""
        self.load_s = self.finish(messages.Loaded, self._session.limit_s("prepare")).seconds

    def begin_prepare(self, shape: Shape, seed: int, live_seed: int, copies: int = 1, *, call: bool = False) -> None:
        """Ask for inputs to be made and the side to be set up on them, in `copies` that share no buffer; `call`: and called once."""
        self.begin(messages.Prepare(shape=dict(shape), seed=seed, live_seed=live_seed, copies=copies, call=call))

    def finish_prepare(self) -> messages.Prepared:
        """Wait until that is done. Raises SideFailure."""
        return self.finish(messages.Prepared, self._session.limit_s("prepare"))

    def prepare(self, shape: Shape, seed: int, live_seed: int, copies: int = 1) -> messages.Prepared:
        """Both at once."""
        self.begin_prepare(shape, seed, live_seed, copies)
        return self.finish_prepare()

    def begin(self, request: Request) -> None:
        """Ask without waiting for the answer."""
        self._begun = request
        self._group.begin(request)

    def finish(self, expected: type[T], seconds: float) -> T:
        """The answer to what was begun. Raises SideFailure."""
        assert self._begun is not None, "finish without begin"
        request, self._begun = self._begun, None
        try:
            answer = self._group.finish(request, expected, seconds)
        except SideFailure as failure:
            name, of_both = self._plan.file(self._side).name, f"{self._plan.selection.pair.workload.name}: metrics"
            is_told = name in failure.reason or failure.reason.startswith(of_both)
            reason = failure.reason if is_told else f"{name}: {failure.reason}"
            raise SideFailure(failure.status, reason) from failure
        self._session.imported.setdefault(self._side, set()).update(map(Path, answer.imported))
        if answer.compiler:
            known = self._session.compiled.get(self._side, [])
            self._session.compiled[self._side] = most_of([*known, *answer.compiler])
        return answer


class Judging:
    """The referees of one row, one a rank, on its GPU; `notes` say what is to be known of their references."""

    def __init__(self, session: Session, plan: Plan) -> None:
        self.notes: set[str] = set()
        self._session = session
        self._plan = plan
        self._children: list[Child] = []
        self._attending: list[messages.Attend] = []  # while the sides start
        with ExitStack() as until_all:
            for rank in range(plan.ranks):
                log = session.logs(plan.target, "") / (f"referee_rank{rank}.log" if rank else "referee.log")
                self._children.append(until_all.enter_context(session.server.fork("referee", log)))
                self._attending.append(messages.Attend(device=plan.device, rank=rank, ranks=plan.ranks))
                self._children[rank].begin(self._attending[rank])
            until_all.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with ExitStack() as closing:
            for child in self._children:
                closing.callback(child.__exit__, kind, error, trace)
                if self._attending:  # nobody will wait for the answer
                    closing.callback(child.kill)

    def require_reference(self, shape: Shape, prepare_seed: int, seed: int) -> None:
        """Raise SideFailure, of the workload, if its reference fails or is not what `outputs` says: no side can be blamed for that."""
        calls = [messages.Outputs(seed=seed, outputs=[], rank=rank, ranks=self._plan.ranks) for rank in range(self._plan.ranks)]
        self._answers({call.rank: self._request("", shape, prepare_seed, call) for call in calls}, messages.Ready)

    def judge(self, side: str, shape: Shape, prepare_seed: int, calls: Sequence[messages.Call], *, timed: bool) -> list[Check]:
        """How right calls were, those of different ranks judged side by side.

        Raises SideFailure with the status that the first deserves that was not.
        """
        checks: dict[int, Check] = {}
        for places in _turns(calls):
            for place in places:
                _require_at_rest(calls[place], self._where(side, shape, calls[place], timed=timed), timed=timed)
            asked = {calls[place].rank: self._request(side, shape, prepare_seed, calls[place]) for place in places}
            judged = self._answers(asked, messages.Judged)
            for place in places:
                checks[place] = self._check(side, shape, calls[place], judged[calls[place].rank], timed=timed)
        return [checks[place] for place in sorted(checks)]

    def _request(self, side: str, shape: Shape, prepare_seed: int, call: messages.Outputs) -> messages.Judge:
        return messages.Judge(
            workload=str(self._plan.selection.pair.workload),
            device=self._plan.device,
            folder=str(self._session.inputs_folder),
            side=side,
            shape=dict(shape),
            prepare_seed=prepare_seed,
            seed=call.seed,
            outputs=call.outputs,
            found=call.found,
            earlier=call.earlier,
            rank=call.rank,
            ranks=call.ranks,
        )

    def _where(self, side: str, shape: Shape, call: messages.Call, *, timed: bool) -> str:
        rank = f", rank {call.rank}" if call.ranks > 1 else ""
        file = self._plan.file(side).name
        return f"{file} at {entries_text(shape)}, input seed {call.seed}{rank}{', in a timed call' if timed else ''}"

    def _check(self, side: str, shape: Shape, call: messages.Call, judged: messages.Judged, *, timed: bool) -> Check:
        """What was `judged` of a call. Raises SideFailure with the status that it deserves if it was not right."""
        where = self._where(side, shape, call, timed=timed)
        self.notes.update(judged.notes)
        if judged.digest != call.digest:
            reason = f"{where}: the inputs in its process are not those that the seed makes; expected the same"
            raise SideFailure(Status.INPUT_MODIFIED, reason)
        if judged.mismatch:
            raise SideFailure(Status.WRONG_RESULT, f"{where}: {judged.mismatch}")
        if call.escaped:  # nothing was poisoned before a timed call, so what was there too early may be an old answer, which is wrong
            reason = f"{where}: the output was there while the stream had not come to the step; expected all its work on that stream"
            raise SideFailure(Status.STREAM_ESCAPE, reason)
        return Check(shape=dict(shape), seed=call.seed, timed_call=timed, outputs=judged.outputs)

    def judge_trace(
        self, side: str, shape: Shape, prepare_seed: int, answers: list[messages.AnsweredRequest], *, teeth: bool
    ) -> messages.TraceJudged:
        """What the referee says of answered requests. Raises SideFailure if it cannot say."""
        request = messages.JudgeTrace(
            workload=str(self._plan.selection.pair.workload),
            device=self._plan.device,
            folder=str(self._session.inputs_folder),
            side=side,
            shape=dict(shape),
            prepare_seed=prepare_seed,
            answers=answers,
            teeth=teeth,
        )
        judged = self._answers({0: request}, messages.TraceJudged)[0]
        if self._plan.device == "cuda" and shape in self._plan.timed.values():
            times = len(self._plan.sides) + 1
            self.notes.add(
                f"its weights, {bytes_text(judged.weight_bytes)}, lie on the GPU {times} times: a side each, and for the referee"
            )
        return judged

    def _answers(self, asked: Mapping[int, Request], expected: type[T]) -> dict[int, T]:
        """What the referees say to what each is `asked`. Raises SideFailure, of the first that fails, when all have answered."""
        attending, self._attending = self._attending, []
        self._finish(dict(enumerate(attending)), messages.Ready)
        for rank, request in asked.items():
            self._children[rank].begin(request)
        return self._finish(asked, expected)

    def _finish(self, begun: Mapping[int, Request], expected: type[T]) -> dict[int, T]:
        limit_s = self._session.limit_s("prepare")
        deadline = time.monotonic() + limit_s
        answers: dict[int, T] = {}
        failures: list[SideFailure] = []
        for rank, request in begun.items():
            try:
                answers[rank] = self._children[rank].finish(request, expected, max(0.0, deadline - time.monotonic()), limit_s)
            except SideFailure as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
        return answers


def _require_at_rest(call: messages.Call, where: str, *, timed: bool) -> None:
    """Raise SideFailure for a call that nobody need judge: its output changed after it, or an input in it."""
    if call.escaped == "late":
        end = "the clock had stopped" if timed else "step had returned"
        raise SideFailure(Status.STREAM_ESCAPE, f"{where}: the output still changed after {end}; expected all work done by then")
    if call.modified:
        raise SideFailure(Status.INPUT_MODIFIED, f"{where}: input {', '.join(call.modified)} was changed; expected it as it was")


def _turns(calls: Sequence[messages.Call]) -> Iterator[list[int]]:
    """The places of the calls that are judged at once: of each rank its next."""
    places: dict[int, list[int]] = {}
    for place, call in enumerate(calls):
        places.setdefault(call.rank, []).append(place)
    for turn in itertools.zip_longest(*places.values()):
        yield [place for place in turn if place is not None]


def entries_text(shape: Shape) -> str:
    """A shape as text: `rows=4096 cols=1024`."""
    return " ".join(f"{key}={value}" for key, value in shape.items())
