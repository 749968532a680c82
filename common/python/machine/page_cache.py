"""How much of a file the page cache holds, seen without touching the file."""

from __future__ import annotations

import ctypes
import mmap
import os

_libc = ctypes.CDLL(None, use_errno=True)


def cached_pages(descriptor: int) -> int:
    """How many pages of the file open for reading at `descriptor` are in the page cache. Raises OSError where the kernel does not say.

    A read that must not wait is no way to see it: the kernel starts to fetch the page that it lacks, and may have it when it looks again.
    """
    size = os.fstat(descriptor).st_size
    if not size:
        return 0
    resident = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        failed = _libc.mincore(ctypes.byref(first), ctypes.c_size_t(size), resident)
        del first  # or the file could not be unmapped
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return len(resident) - resident.raw.count(0)
