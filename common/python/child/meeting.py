"""Where the ranks of a side meet: a page of shared memory, in which each has words that it alone writes.

A meeting through sockets ends for one rank hundreds of microseconds before it does for another; this one ends for all within a few. A rank
that waits looks at the others' words over and over, and gives its core away between two looks. So it must have one of its own.

One word more is the gate of all: their GPUs look at it, and whichever rank first learns that all are here can open it for all.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from time import monotonic, sleep

from common.python.errors import BenchmarkError

# Bound before any side is imported, so a side that patches the time module patches nothing here.
_clock_s, _sleep, _give_way = monotonic, sleep, os.sched_yield

_PATIENCE_S = 3600.0  # limits are the parent's, who says which rank it was
_EAGER_S = 0.02  # in which a rank comes that had as much to do as this one; beyond it nobody waits to the microsecond
_NAP_S = 0.0002
_LINE_BYTES = 64  # so that no two ranks write the same line of a cache


class Meeting:
    """Rank `rank` of `ranks`, who all name the same file `path` in shared memory; the first of them makes it."""

    def __init__(self, path: str, rank: int, ranks: int) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, size := (2 * ranks + 1) * _LINE_BYTES)  # of zeros; once that is so, it does nothing
            page = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        # Two words a rank, for meetings by turns: a rank may be at the next before another has read what it said in this one. Nobody is at
        # the one after that before all are at the next.
        self._words = [
            [ctypes.c_uint64.from_buffer(page, (1 + turn * ranks + each) * _LINE_BYTES) for each in range(ranks)] for turn in range(2)
        ]
        self.gate = ctypes.c_uint32.from_buffer(page)
        self._rank = rank
        self._number = 0

    def meet(self, flag: bool = False) -> list[bool]:
        """Wait until all are here, and learn the flag of each. Raises BenchmarkError if a rank does not come within an hour."""
        self._number += 1
        words = self._words[self._number % 2]
        words[self._rank].value = self._number << 1 | flag
        for rank, word in enumerate(words):
            self._wait_for(rank, word)
        return [bool(word.value & 1) for word in words]

    def _wait_for(self, rank: int, word: ctypes.c_uint64) -> None:
        begin = _clock_s()
        while word.value >> 1 != self._number:
            _give_way()
            waited_s = _clock_s() - begin
            if waited_s > _PATIENCE_S:
                raise BenchmarkError(f"rank {rank} did not come to meet rank {self._rank}; expected it within {_PATIENCE_S:.0f} s")
            if waited_s > _EAGER_S:
                _sleep(_NAP_S)
