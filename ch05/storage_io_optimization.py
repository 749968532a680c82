"""Reads one file in five ways and says what is the same: the bytes; and what is not: the requests, and what the page cache then holds.

./setup.sh python ch05/storage_io_optimization.py [FOLDER]

FOLDER is on the disk to try, the current one by default. A folder in memory, on tmpfs, is refused. Needs 64 MiB there for a moment.
How long each way takes is for the rows: sequential_io, storage_cpu and io_uring.
"""

import mmap
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from common.io_uring import Ring
from common.python.machine.page_cache import cached_pages
from common.python.machine.storage_needs import unmet_storage

SIZE = 64 << 20  # bytes
SMALL, LARGE = 4 << 10, 4 << 20  # bytes a request
THREADS, IN_FLIGHT = 4, 64


def in_requests(size):
    """Read front to back, `size` bytes a request."""

    def read(descriptor, into):
        starts = range(0, SIZE, size)
        for start in starts:
            os.preadv(descriptor, [into[start : start + size]], start)
        return len(starts), 1

    return read


def by_threads(descriptor, into):
    """Large requests of several threads."""
    starts = range(0, SIZE, LARGE)
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda start: os.preadv(descriptor, [into[start : start + LARGE]], start), starts))
    return len(starts), THREADS


def by_io_uring(descriptor, into):
    """Small requests of one thread, many in flight."""
    ring = Ring(IN_FLIGHT)
    ring.read(descriptor, np.arange(0, SIZE, SMALL), into.reshape(-1, SMALL))
    ring.close()
    return SIZE // SMALL, IN_FLIGHT


def by_mapping(descriptor, into):
    """No request at all: each page is read when it is touched."""
    with mmap.mmap(descriptor, SIZE, access=mmap.ACCESS_READ) as mapped:
        into[:] = np.frombuffer(mapped.read(), dtype=np.uint8)
    return 0, 1


WAYS = {"small requests": in_requests(SMALL), "large requests": in_requests(LARGE), "threads": by_threads, "mapped": by_mapping}


def main(arguments):
    """Try all ways on a file in the folder. Raises SystemExit where one reads other bytes, and where the folder is in memory."""
    folder = Path(*arguments[:1])
    if reasons := unmet_storage(["disk"], gpu=False, folder=folder):
        raise SystemExit(reasons[0])
    refused = unmet_storage(["io_uring"], gpu=False, folder=folder)
    ways = WAYS if refused else {**WAYS, "io_uring": by_io_uring}
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        right = np.random.default_rng(0).integers(256, size=SIZE, dtype=np.uint8)
        file.write(right)
        file.flush()
        os.fsync(file.fileno())  # what is not on the disk yet stays in the page cache
        for name, read in ways.items():
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            before, into = cached_pages(file.fileno()), np.zeros(SIZE, dtype=np.uint8)
            requests, most = read(file.fileno(), into)
            if not np.array_equal(into, right):
                raise SystemExit(f"{name}: found other bytes than were written; expected the same")
            after = cached_pages(file.fileno())
            print(f"{name}: {requests} requests, at most {most} in flight; pages in the page cache: {before} before, {after} after")
    print(*refused, sep="\n", end="\n" if refused else "")


if __name__ == "__main__":
    main(sys.argv[1:])
