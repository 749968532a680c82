"""The harness's own processes, asked for one side at a time: a worker loads it, a referee that never imports it judges it."""

from __future__ import annotations

import functools
import itertools
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self, TypeVar

from common.python.child.sides.loader import load_workload
from common.python.errors import SideFailure
from common.python.machine.description import child_environment
from common.python.pairs.sources import cubins_of, digest_of
from common.python.pairs.workload import Shape
from common.python.processes import messages
from common.python.processes.fork_server import Child, ForkServer
from common.python.processes.messages import Answer, Request
from common.python.processes.ranks import RankGroup
from common.python.project import PROJECT_ROOT
from common.python.results import BASELINE
from common.python.session.planning import uses_compiler, uses_triton
from common.python.session.serving import TEETH_REQUESTS, too_few
from common.python.session.session import BUILD_CACHE
from tests.pairs.tree import Side, role_of

T = TypeVar("T", bound=Answer)

LIMIT_S = 300  # a process that takes so long hangs, beside others on a machine of two cores too
SEEDS = (2, 3)  # of the inputs of two calls; `prepare` gets those of seed 1


class Harness:
    """Fork servers and a referee, for CPU tensors; all start when they are first asked.

    Workers of a side that has no Triton find torch's compiler imported: optimizers, FSDP and DTensor import it too, in 4 s. So do
    those that compile a Triton side, and Triton started, which would else read all of its own files in each.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        trusted = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}  # else each worker that compiles tries in seconds whether vector code can be built
        self._server = self._stack.enter_context(ForkServer(child_environment(PROJECT_ROOT, "cpu") | trusted))
        self._with_compiler = self._stack.enter_context(self._server.for_compiled_sides())
        self._folder = Path(self._stack.enter_context(TemporaryDirectory()))
        self._memory = Path(self._stack.enter_context(TemporaryDirectory(dir="/dev/shm")))
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    @functools.cached_property
    def _referee(self) -> Child:
        return self._stack.enter_context(self._server.fork("referee", self._folder / "referee.log"))

    @functools.cached_property
    def _client(self) -> Child:
        return self._stack.enter_context(self._server.fork("client", self._folder / "client.log"))

    def check(self, side: Side, shapes: list[Shape], ranks: int = 0) -> None:
        """Compare the Python side with its reference at every shape, on two seeds. Raises SideFailure and AssertionError.

        A side of several ranks runs in `ranks` processes with gloo, or in as few as it can run in.
        """
        ranks = ranks or min(load_workload(side.pair.workload).ranks, default=1)
        interpreted = uses_triton(side.file)
        server = self._server if interpreted else self._with_compiler
        logs = [self._folder / f"log_{rank}.txt" for rank in range(ranks)]
        with RankGroup([server.fork("worker", log, starts=[] if interpreted else ["compiler"]) for log in logs]) as workers:
            load = messages.Load(
                workload=str(side.pair.workload),
                side=str(side.file),
                library="",
                device="cpu",
                interpret=interpreted,
                folder=str(self._folder),
                cold=False,
                caches=str(BUILD_CACHE / "compiled") if uses_compiler(side.file) else "",
                triton=False,
                watched=False,
                digest=digest_of(side.pair.workload, side.file, *cubins_of(side.file)),
                rendezvous=str(self._folder / f"rendezvous_{next(self._numbers)}"),
            )
            _ask(workers, load, messages.Loaded)
            serves = load_workload(side.pair.workload).serving is not None
            for shape in shapes:
                if serves:
                    self._serve_at(workers, side, shape, teeth=shape == shapes[-1] and side.name == BASELINE)
                else:
                    self._check_at(workers, side, shape)

    def _serve_at(self, workers: RankGroup, side: Side, shape: Shape, *, teeth: bool) -> None:
        """Have the side serve two traces, and hold its answers to the workload; with `teeth` try its bound too, on the last."""
        _ask(workers, messages.Prepare(shape=dict(shape), seed=1, live_seed=SEEDS[0]), messages.Prepared)
        for seed in SEEDS:
            ring = str(self._memory / str(next(self._numbers)))
            replay = messages.Replay(
                workload=str(side.pair.workload),
                shape=dict(shape),
                seed=seed,
                ring=ring,
                closed_loop=True,
                saturation_per_s=0.0,
                picks=TEETH_REQUESTS,
                core=-1,
                seconds=LIMIT_S,
                glance_s=1e-3,  # no time is wanted here, and two cores have more to do
            )
            self._client.begin(replay)
            try:
                served = _ask(workers, messages.Serve(ring=ring, core=-1), messages.Served)
                replayed = self._client.finish(replay, messages.Replayed, LIMIT_S)
            except SideFailure:  # the next side must not get this one's answer
                del self._client
                raise
            where = f"{side.file.name} at {dict(shape)}, trace {seed}"
            assert not replayed.problem, f"{where}: {replayed.problem}"
            request = messages.JudgeTrace(
                workload=str(side.pair.workload),
                device="cpu",
                folder=str(self._folder),
                side=role_of(side.file),
                shape=dict(shape),
                prepare_seed=1,
                answers=replayed.answers,
                teeth=teeth and seed == SEEDS[-1],
            )
            judged = self._referee.ask(request, messages.TraceJudged, LIMIT_S)
            assert judged.digest == served.digest, f"{where}: the weights in its process are not those that the seed makes"
            assert not judged.mismatch, f"{where}: {judged.mismatch}"
            for refused, tried in ((judged.refused_swapped, judged.tried), (judged.refused_stale, judged.tried_stale)):
                assert not (tried and too_few(refused, tried)), f"{where}: of {tried} wrong contexts {refused} are refused"

    def _check_at(self, workers: RankGroup, side: Side, shape: Shape) -> None:
        _ask(workers, messages.Prepare(shape=dict(shape), seed=1, live_seed=SEEDS[0]), messages.Prepared)
        prefix = str(self._memory / str(next(self._numbers)))
        checked = _ask(workers, messages.Check(seeds=list(SEEDS), prefix=prefix), messages.Checked)
        for call in checked.calls:
            where = f"{side.file.name} at {dict(shape)}, seed {call.seed}"
            assert not call.modified, f"{where}: changed its inputs {', '.join(call.modified)}"
            assert not call.escaped, f"{where}: the output still changed after the step had returned"
            request = messages.Judge(
                workload=str(side.pair.workload),
                device="cpu",
                folder=str(self._folder),
                side=role_of(side.file),
                shape=dict(shape),
                prepare_seed=1,
                seed=call.seed,
                outputs=call.outputs,
                rank=call.rank,
                ranks=call.ranks,
            )
            judged = self._referee.ask(request, messages.Judged, LIMIT_S)
            assert judged.digest == call.digest, f"{where}: the inputs in its process are not those that the seed makes"
            assert not judged.mismatch, f"{where}: {judged.mismatch}"

    def compile(self, side: Side, shape: Shape, capability: tuple[int, int]) -> messages.Observed:
        """What a step of the Triton side launches on a GPU of `capability`, with its machine code. Raises SideFailure."""
        request = messages.Ahead(
            workload=str(side.pair.workload),
            side=str(side.file),
            shape=dict(shape),
            capability=capability,
            prefix=str(self._memory / f"{next(self._numbers)}_"),
        )
        with self._with_compiler.fork("worker", self._folder / "log.txt", starts=["triton", "compiler"]) as worker:
            return worker.ask(request, messages.Observed, LIMIT_S)


def _ask(workers: RankGroup, request: Request, expected: type[T]) -> T:
    workers.begin(request)
    return workers.finish(request, expected, LIMIT_S)
