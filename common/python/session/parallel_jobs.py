"""Children at work side by side: no more at once than there is room for, finished in their order, and none left after Ctrl-C."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import psutil

from common.python.errors import SideFailure


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
