"""Builds of sides: one row's where it needs them, or all rows' ahead, side by side on every core, before anything is timed."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, TypeVar

import psutil

from common.python.build.nvcc import architectures_for
from common.python.build.sass import Unreadable, read_code
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.machine.description import Machine
from common.python.processes import messages
from common.python.processes.fork_server import Child
from common.python.session.planning import Plan
from common.python.session.session import BUILD_CACHE, Session


class Job(Protocol):
    """Something that a child does, which may take `memory_bytes`."""

    memory_bytes: int

    def begin(self) -> None:
        """Start the child. Raises SideFailure."""

    def finish(self) -> None:
        """Wait for its answer, and keep it. Raises SideFailure."""

    def kill(self) -> None:
        """End it at once."""


J = TypeVar("J", bound=Job)


def room_for(memory_bytes: int) -> int:
    """How many children that take so much memory each can be at work at once, a core each; at least one."""
    return max(1, min(len(os.sched_getaffinity(0)), psutil.virtual_memory().available // memory_bytes))


def side_by_side(jobs: Iterable[J], at_once: int, finished: Callable[[J], None] = lambda _: None) -> None:
    """Do `jobs`, and call `finished` after each. One that fails costs no other anything: its own state is what tells."""
    waiting, at_work = deque(jobs), deque[J]()
    with contextlib.ExitStack() as stack:
        stack.callback(_kill, at_work)  # after Ctrl-C, say
        while waiting or at_work:
            while waiting and len(at_work) < at_once:
                job = waiting.popleft()
                try:
                    job.begin()
                    at_work.append(job)
                except SideFailure:
                    finished(job)
            if not at_work:
                continue
            with contextlib.suppress(SideFailure):
                at_work[0].finish()
            finished(at_work.popleft())


def _kill(jobs: Iterable[Job]) -> None:
    for job in jobs:
        job.kill()


class Listed(Job, Protocol):
    """A build job whose machine code can be listed, as proofs need it."""

    def read(self) -> object:
        """List the machine code that the job made. Raises Unreadable."""


def build_row(plan: Plan, session: Session, machine: Machine) -> None:
    """Compile the .cu sides of a row that are not built, for the architectures that its device or their needs name. Raises SideFailure."""
    if plan.described.mismatch:
        raise SideFailure(Status.BUILD_FAILED, plan.described.mismatch)
    for side in _unbuilt(plan, session):
        session.tell(f"building {plan.file(side).name}")
        build = _Build(plan, side, session, machine)
        build.begin()
        build.finish()


def build_ahead(plans: Sequence[Plan], session: Session, machine: Machine, tell: Callable[[str], None]) -> None:
    """Compile the .cu sides of `plans`, and list their machine code. What fails is left for its own row, which tells why."""
    plans = [plan for plan in plans if not plan.described.mismatch]
    builds = {plan.file(side): _Build(plan, side, session, machine) for plan in plans for side in _unbuilt(plan, session)}
    make_all(list(builds.values()), lambda done: tell(f"built {done} CUDA sides"))


def make_all(jobs: Sequence[Listed], tell: Callable[[str], None]) -> None:
    """Do several jobs if that can be done side by side, and have what each made listed; `tell` is told how many of all are done."""
    at_once = room_for(max((job.memory_bytes for job in jobs), default=1))
    if len(jobs) < 2 or at_once < 2:
        return
    with ThreadPoolExecutor(room_for(1)) as listers:  # a disassembler at work is another process
        listings: list[Future[object]] = []

        def finished(job: Listed) -> None:
            listings.append(listers.submit(job.read))
            tell(f"{len(listings)} of {len(jobs)}")

        side_by_side(jobs, at_once, finished)
    for listing in listings:
        with contextlib.suppress(Unreadable):
            listing.result()


def _unbuilt(plan: Plan, session: Session) -> Iterator[str]:
    return (side for side in plan.sides if plan.file(side).suffix == ".cu" and str(plan.file(side)) not in session.builds)


class _Build:
    """A compiler at work for one .cu side; `built` is what it made."""

    memory_bytes = 4 << 30  # that nvcc may take: CUTLASS takes 3.4

    def __init__(self, plan: Plan, side: str, session: Session, machine: Machine) -> None:
        self.built: messages.BuildDone | None = None
        self._plan = plan
        self._side = side
        self._session = session
        self._machine = machine
        self._begun: tuple[Child, messages.Build] | None = None

    def begin(self) -> None:
        """Start it. Raises SideFailure for architectures that cannot be."""
        plan, machine, session = self._plan, self._machine, self._session
        source, directives = plan.file(self._side), plan.side_directives[self._side]
        needs = (*plan.workload_directives.needs, *directives.needs)
        capability = machine.gpus[0].capability if machine.gpus and plan.device == "cuda" and not plan.skip else None
        try:
            architectures = architectures_for(needs, capability)
        except BenchmarkError as error:
            raise SideFailure(Status.BUILD_FAILED, f"{source.name}: {error}") from error
        request = messages.Build(
            source=str(source),
            root=str(session.root_of(source)),
            cache=str(BUILD_CACHE),
            architectures=list(architectures),
            flags=list(directives.nvcc),
        )
        child = session.server.fork("worker", session.logs(plan.target, self._side) / "log.txt")
        child.begin(request)
        self._begun = child, request

    def finish(self) -> None:
        """Wait for its library, which the session then has. Raises SideFailure."""
        assert self._begun is not None, "finish without begin"
        child, request = self._begun
        with child:
            built = child.finish(request, messages.BuildDone, self._session.limit_s("build"))
        self.built = self._session.builds[request.source] = built

    def kill(self) -> None:
        """End it at once."""
        if self._begun:
            self._begun[0].kill()

    def read(self) -> None:
        """Have its machine code listed. Raises Unreadable."""
        if self.built:
            read_code(Path(self.built.library))
