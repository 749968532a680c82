"""The most device memory that a process holds while a step runs: torch's allocator tells its part, the driver what lies beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch.autograd.profiler import profile

# Bound before any side is imported, so a side that patches torch patches nothing here.
_free_of = torch.cuda.mem_get_info
_reserved, _most_reserved = torch.cuda.memory_reserved, torch.cuda.max_memory_reserved
_most_allocated, _reset = torch.cuda.max_memory_allocated, torch.cuda.reset_peak_memory_stats
_synchronize = torch.cuda.synchronize

_LEAST_S = 0.2  # in which the driver is asked often enough to meet memory that a step takes and gives back
_MOST_STEPS = 64


class Memory(Protocol):
    """What `footprint_of` asks about the memory of a device, in bytes."""

    def free(self) -> int:
        """Bytes of device memory that the driver reports as free."""

    def reserved(self) -> int:
        """Bytes that torch's caching allocator holds from the driver, in use or not."""

    def most_reserved(self) -> int:
        """The largest value of `reserved`, in bytes, since the last reset."""

    def most_allocated(self) -> int:
        """The largest number of bytes in use by torch's tensors since the last reset."""

    def reset(self) -> None:
        """Start both maxima again, from their current values."""

    def wait(self) -> None:
        """Wait until the device has finished all queued work."""


class DeviceMemory:
    """The memory of the current CUDA device."""

    def free(self) -> int:
        """Bytes of device memory that the driver reports as free."""
        return _free_of()[0]

    def reserved(self) -> int:
        """Bytes that torch's caching allocator holds from the driver, in use or not."""
        return _reserved()

    def most_reserved(self) -> int:
        """The largest value of `reserved`, in bytes, since the last reset."""
        return _most_reserved()

    def most_allocated(self) -> int:
        """The largest number of bytes in use by torch's tensors since the last reset."""
        return _most_allocated()

    def reset(self) -> None:
        """Start both maxima again, from their current values."""
        _reset()

    def wait(self) -> None:
        """Wait until the device has finished all queued work."""
        _synchronize()


@dataclass(frozen=True)
class Footprint:
    """Bytes: the most in use in torch's allocator during a step, and the most that lay beside it, the code of kernels included."""

    allocated: int
    outside: int


@dataclass(frozen=True)
class Start:
    """What the device had left, and torch's allocator had taken, before a side was loaded: what it takes from then on is the side's."""

    free: int
    reserved: int

    @classmethod
    def of(cls, memory: Memory) -> Start:
        """The two figures of `memory` at the time of the call, in bytes."""
        return cls(memory.free(), memory.reserved())


def footprint_of(step: Callable[[], object], start: Start, memory: Memory) -> Footprint:
    """What the process of a side holds at most while `step` runs, again and again for a fifth of a second.

    No other process may take or give back memory of the device meanwhile, nor since `start`.
    """
    memory.reset()
    with _least_free(memory) as seen:
        begin, steps = time.perf_counter(), 0
        while not steps or (steps < _MOST_STEPS and time.perf_counter() - begin < _LEAST_S):
            step()
            memory.wait()
            steps += 1
    outside = start.free - min(seen) - (memory.most_reserved() - start.reserved)
    return Footprint(memory.most_allocated(), max(0, outside))


def blocks_of(step: Callable[[], object]) -> tuple[int, int]:
    """How many blocks of memory torch allocates on the CPU in one call of `step`, and their bytes in all."""
    with profile(profile_memory=True, use_kineto=True) as profiler:
        step()
    sizes = [event.nbytes() for event in profiler.kineto_results.events() if event.name() == "[memory]"]
    taken = [size for size in sizes if size > 0]  # what is given back is negative
    return len(taken), sum(taken)


@contextmanager
def _least_free(memory: Memory) -> Iterator[list[int]]:
    """What was left at every look, which a thread takes as often as it can; the first is before it starts, the last when it has ended."""
    seen = [memory.free()]
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            seen[0] = min(seen[0], memory.free())

    thread = threading.Thread(target=look, name="footprint", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
        seen[0] = min(seen[0], memory.free())
