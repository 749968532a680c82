"""Builds of .cu sides: one where a row needs it, or those of all rows ahead, side by side on every core, before anything is timed."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil

from common.python import protocol
from common.python.bench import BUILD_CACHE, Bench
from common.python.cuda_build import architectures_for
from common.python.disassembly import Kernel, Unreadable, read_code
from common.python.environment import Machine
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.isolation import Child
from common.python.planning import Plan

_BYTES = 4 << 30  # of memory that a compiler may take: CUTLASS takes 3.4


def build_row(plan: Plan, bench: Bench, machine: Machine) -> None:
    """Compile the .cu sides of a row that are not built, for the architectures that its device or their needs name. Raises SideFailure."""
    if plan.described.mismatch:
        raise SideFailure(Status.BUILD_FAILED, plan.described.mismatch)
    for side in _unbuilt(plan, bench):
        bench.tell(f"building {plan.file(side).name}")
        _Build.begin(plan, side, bench, machine).finish(bench)


def build_ahead(plans: Sequence[Plan], bench: Bench, machine: Machine, tell: Callable[[str], None]) -> None:
    """Compile what `plans` need, and list its machine code. What fails is left for its own row, which tells why."""
    sides = {plan.file(side): (plan, side) for plan in plans if not plan.described.mismatch for side in _unbuilt(plan, bench)}
    at_once = max(1, min(len(os.sched_getaffinity(0)), psutil.virtual_memory().available // _BYTES))
    if len(sides) < 2 or at_once < 2:
        return
    waiting, at_work = deque(sides.values()), deque[_Build]()
    listings: list[Future[tuple[Kernel, ...]]] = []
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(at_once) as listers:
        stack.callback(_kill, at_work)  # after Ctrl-C, say
        while waiting or at_work:
            while waiting and len(at_work) < at_once:
                with contextlib.suppress(SideFailure):
                    at_work.append(_Build.begin(*waiting.popleft(), bench, machine))
            if not at_work:
                continue
            with contextlib.suppress(SideFailure):
                built = at_work[0].finish(bench)
                listings.append(listers.submit(read_code, Path(built.library)))
            at_work.popleft()
            tell(f"built {len(sides) - len(waiting) - len(at_work)} of {len(sides)} CUDA sides")
    for listing in listings:
        with contextlib.suppress(Unreadable):
            listing.result()


def _kill(builds: Iterable[_Build]) -> None:
    for build in builds:
        build.child.kill()


def _unbuilt(plan: Plan, bench: Bench) -> Iterator[str]:
    return (side for side in plan.sides if plan.file(side).suffix == ".cu" and str(plan.file(side)) not in bench.builds)


@dataclass(frozen=True)
class _Build:
    """A compiler at work for one side."""

    child: Child
    request: protocol.Build

    @classmethod
    def begin(cls, plan: Plan, side: str, bench: Bench, machine: Machine) -> _Build:
        """Start it. Raises SideFailure for architectures that cannot be."""
        source, directives = plan.file(side), plan.side_directives[side]
        needs = (*plan.workload_directives.needs, *directives.needs)
        capability = machine.gpus[0].capability if machine.gpus and plan.device == "cuda" and not plan.skip else None
        try:
            architectures = architectures_for(needs, capability)
        except BenchmarkError as error:
            raise SideFailure(Status.BUILD_FAILED, f"{source.name}: {error}") from error
        request = protocol.Build(
            source=str(source),
            root=str(bench.root_of(source)),
            cache=str(BUILD_CACHE),
            architectures=list(architectures),
            flags=list(directives.nvcc),
        )
        child = bench.server.fork("worker", bench.logs(plan.target, side) / "log.txt")
        child.begin(request)
        return cls(child, request)

    def finish(self, bench: Bench) -> protocol.BuildDone:
        """Wait for its library, which the bench then has. Raises SideFailure."""
        with self.child:
            built = self.child.finish(self.request, protocol.BuildDone, bench.limit_s("build"))
        bench.builds[self.request.source] = built
        return built
