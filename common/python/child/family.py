"""The threads and processes that a side starts: which cores they may run on, and what they do between its timed calls.

A side with `allows: threads` or `allows: processes` may share a step's work among them. Between its steps they are to wait: what they
do there is in no time, whether it is left from the last step or ahead of the next. No clock stops for them, so their CPU time tells.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import torch

from common.python.wording import time_text

_LISTS_CHILDREN = Path("/proc/thread-self/children")
_PR_SET_CHILD_SUBREAPER = 36
_SHARE_OF_CALL = 0.1  # of a call: what waits for its next order wakes up now and then
_LEAST_NS = 1e6

_own_ns, _thread_ns, _clock_ns, _usage = time.process_time_ns, time.thread_time_ns, time.clock_gettime_ns, resource.getrusage


def cores_in_use() -> set[int]:
    """The cores on which the threads of this process and of its children may run."""
    cores: set[int] = set()
    for process in _family(os.getpid()):
        for thread in _threads(process):
            with contextlib.suppress(ProcessLookupError):
                cores |= os.sched_getaffinity(int(thread.name))
    return cores


@contextlib.contextmanager
def on_one_thread() -> Iterator[None]:
    """Torch works on the calling thread alone: its other threads, which draw inputs between calls, would be taken for a side's."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def adopt_orphans() -> None:
    """Stay the parent of what children start and leave behind, so that it is seen as theirs is."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


class BetweenCalls:
    """CPU time, by call, that all but the calling thread took since the call before, or since the block began."""

    def __init__(self) -> None:
        self._since_ns = 0
        self._between_ns: list[int] = []
        self._calls_ns: list[int] = []

    def block_begins(self) -> None:
        """Forget the calls so far; what is done from here on counts."""
        self._between_ns, self._calls_ns = [], []
        self._since_ns = _others_ns()

    def call_begins(self) -> None:
        """Directly before the clock starts."""
        self._between_ns.append(_others_ns() - self._since_ns)

    def call_ended(self, elapsed_ns: int) -> None:
        """Directly after it has stopped."""
        self._calls_ns.append(elapsed_ns)
        self._since_ns = _others_ns()

    def work(self) -> str:
        """A sentence on work between the calls of a block, or nothing. A time is a median of calls, so the median tells."""
        if not self._calls_ns:
            return ""
        found_ns = statistics.median(self._between_ns)
        if found_ns <= max(_LEAST_NS, _SHARE_OF_CALL * statistics.median(self._calls_ns)):
            return ""
        return f"found its threads and processes at work for {time_text(found_ns)} between two timed calls; expected them to wait there"


def _others_ns() -> int:
    """CPU time of this process but for the calling thread, and of its children's children, ended ones that were waited for included."""
    ended = _usage(resource.RUSAGE_CHILDREN)
    total = _own_ns() - _thread_ns() + int(1e9 * (ended.ru_utime + ended.ru_stime))
    own = os.getpid()
    for process in _family(own):
        if process != own:
            with contextlib.suppress(OSError):  # it has ended
                total += _clock_ns(_cpu_clock(process))
    return total


def _cpu_clock(process: int) -> int:
    """The id of the clock of another process's CPU time, as clock_getcpuclockid(3) makes it."""
    return (~process << 3) | 2


def _family(process: int) -> Iterator[int]:
    """A process and its children's children."""
    yield process
    if not _LISTS_CHILDREN.exists():  # a kernel without them: all processes of the machine are asked for their parents
        with contextlib.suppress(psutil.NoSuchProcess):
            yield from (child.pid for child in psutil.Process(process).children(recursive=True))
        return
    for thread in _threads(process):
        with contextlib.suppress(OSError):  # it has ended
            for child in (thread / "children").read_text(encoding="ascii").split():
                yield from _family(int(child))


def _threads(process: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{process}/task").iterdir())
    except OSError:  # it has ended
        return []
