"""What a row that reads from a disk says beside its times: how fast the disk delivers the row's own file, cold."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import Metric

_REQUEST = 4 << 20  # bytes
_READERS = 4
_LEAST = 1 << 20  # bytes of a file that says anything of a pace


def disk(file: Path) -> dict[str, Metric]:
    """The pace in GB/s at which the disk delivers `file` cold: four threads, each with one request of 4 MiB in flight.

    Empty for a file under 1 MiB. On a disk with a cache below the kernel, such as a virtual machine's host, it is that cache's pace.
    """
    size = file.stat().st_size
    if size < _LEAST:
        return {}
    with file.open("rb", buffering=0) as stream, ThreadPoolExecutor(_READERS) as pool:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        starts = range(0, size, _REQUEST)
        begin = time.perf_counter()
        delivered = sum(pool.map(lambda start: os.preadv(stream.fileno(), [bytearray(_REQUEST)], start), starts))
        seconds = time.perf_counter() - begin
    return {"disk": Metric(delivered / seconds * 1e-9, "GB/s", "higher")}
