"""What one thread of a CPU and its storage can do at most, and how samples of several ways become one ceiling: the best way's median.

Memory is driven by torch's loops and by the C library's, whichever is faster; data is random and far larger than the caches. What other
processes take is not the machine's: the thread's own CPU time is read, each way is tried in several rounds, and the best round counts.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter_ns, thread_time_ns

import psutil
import torch

from common.python.child.device.sampler import Sample
from common.python.child.sides.inputs import RandomFile
from common.python.errors import SideFailure, Status
from common.python.machine.ceilings import Ceiling, L2State, Mode, Unit
from common.python.results import Interval

_TAIL = 0.025  # on either side of a 95 % interval
_SAMPLES = 6
_ROUNDS = 3
_LEAST_BUFFER_BYTES, _MOST_BUFFER_BYTES = 256 << 20, 768 << 20
_CACHES_PER_BUFFER = 4
_MOST_MEMORY_SHARE = 0.1
_MATRIX_SIZES = (512, 1024)
_FILE_BYTES = 256 << 20
_READ_BYTES = 4 << 20
_READERS = (1, 8)

Call = Callable[[], object]


@dataclass(frozen=True)
class Way:
    """Samples of one way to do `amount` of something: bytes, flop or launches."""

    how: str
    amount: float
    samples: Sequence[Sample]

    def interval(self, unit: Unit) -> Interval:
        """The median of amounts a second, or of seconds each where `unit` is s."""
        seconds = [sample.ns * 1e-9 for sample in self.samples]
        return median_interval([second / self.amount if unit == "s" else self.amount / second for second in seconds])


@dataclass
class Findings:
    """What a topic brought: ceilings, why some were not measured, and what else there is to know."""

    ceilings: list[Ceiling] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def keep(self, name: str, unit: Unit, ways: Sequence[Way], *, mode: Mode = "burst", l2: L2State = "none") -> None:
        """Take the best of `ways` as the ceiling `name`."""
        best = (min if unit == "s" else max)(ways, key=lambda way: way.interval(unit).estimate)
        clocks = [sample.sm_clock_hz for sample in best.samples if sample.sm_clock_hz]
        self.ceilings.append(
            Ceiling(
                name=name,
                value=best.interval(unit),
                unit=unit,
                mode=mode,
                l2=l2,
                samples=len(best.samples),
                sm_clock_hz=statistics.median(clocks) if clocks else None,
                how=best.how,
            )
        )


def median_interval(values: Sequence[float]) -> Interval:
    """The median and the order statistics round it that hold it with 95 %; of less than 6 values the whole range, which covers less."""
    ordered = sorted(values)
    count = len(ordered)
    below = list(itertools.accumulate(math.comb(count, rank) / 2**count for rank in range(count)))
    rank = max([rank for rank in range(count // 2) if below[rank] <= _TAIL], default=0)
    return Interval(estimate=statistics.median(ordered), low=ordered[rank], high=ordered[-1 - rank])


def samples_of(call: Call, before: Call = lambda: None, clock_ns: Callable[[], int] = perf_counter_ns) -> list[Sample]:
    """Times of `call` in ns, read from `clock_ns`. `before` runs untimed ahead of each call. The first call is a warm-up, dropped."""
    samples = []
    for _ in range(_SAMPLES + 1):
        before()
        begin = clock_ns()
        call()
        samples.append(Sample(float(clock_ns() - begin)))
    return samples[1:]


def in_rounds(calls: Mapping[str, tuple[float, Call]]) -> list[Way]:
    """Each call with its amount, by what it is, sampled in rounds that take turns, by this thread's CPU time."""
    return [Way(how, amount, samples_of(call, clock_ns=thread_time_ns)) for _ in range(_ROUNDS) for how, (amount, call) in calls.items()]


def product(name: str, size: int, device: torch.device) -> Call:
    """A product of two random `size` x `size` matrices, b given by rows of its transpose, as weights are."""
    dtype = {"fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[name]
    a, b = (torch.randn(size, size, dtype=dtype, device=device) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b.T, out=out)


class HostSurvey:
    """The topics of a CPU, each driven by this one thread."""

    def __init__(self, folder: Path) -> None:
        self.cache_bytes = _last_cache_bytes()
        self.topics: dict[str, Callable[[Findings], None]] = {
            "dram": self._dram,
            "matrix": self._matrix,
            "storage": lambda findings: read_storage(findings, folder),
        }

    def _dram(self, findings: Findings) -> None:
        available = int(_MOST_MEMORY_SHARE * psutil.virtual_memory().available)
        wanted = min(max(_LEAST_BUFFER_BYTES, _CACHES_PER_BUFFER * self.cache_bytes), _MOST_BUFFER_BYTES)
        size = min(wanted, available) & ~63
        a, b, c = (torch.empty(size // 4).uniform_() for _ in range(3))
        b.copy_(a)
        library = ctypes.CDLL(None)
        to, other, count = ctypes.c_void_p(b.data_ptr()), ctypes.c_void_p(a.data_ptr()), ctypes.c_size_t(size)
        ways: dict[str, dict[str, tuple[float, Call]]] = {
            "dram_read": {
                "torch.sum": (size, a.sum),
                "memcmp": (2 * size, lambda: library.memcmp(to, other, count)),
            },
            "dram_copy": {
                "Tensor.copy_": (2 * size, lambda: b.copy_(a)),
                "memcpy": (2 * size, lambda: library.memcpy(to, other, count)),
            },
            "dram_write": {
                "Tensor.fill_": (size, lambda: b.fill_(0.5)),
                "memset": (size, lambda: library.memset(to, 85, count)),
            },
            "dram_triad": {"torch.add": (3 * size, lambda: torch.add(a, b, alpha=3.0, out=c))},
        }
        for name, calls in ways.items():
            measured = {f"{how}, {size >> 20} MiB": call for how, call in calls.items()}
            findings.keep(name, "bytes/s", in_rounds(measured))

    def _matrix(self, findings: Findings) -> None:
        for name in ("fp32", "fp64"):
            cpu = torch.device("cpu")
            calls = {f"{size} x {size} x {size}": (2.0 * size**3, product(name, size, cpu)) for size in _MATRIX_SIZES}
            findings.keep(name, "flop/s", in_rounds(calls))


def read_storage(findings: Findings, folder: Path) -> None:
    """Read a file of random bytes that is not in the page cache, with one thread and with several. Raises SideFailure."""
    file = RandomFile(folder / "storage_read", _FILE_BYTES, seed=0, index=0)
    try:
        if not file.leave_cache():
            findings.missing["storage_read"] = f"the page cache of the file system at {folder} keeps a file that it is asked to drop"
            return
        calls = {f"{count} at a time, {_READ_BYTES >> 20} MiB each": partial(_read_whole, file.path, count) for count in _READERS}
        ways = [Way(how, _FILE_BYTES, samples_of(call, before=file.leave_cache)) for how, call in calls.items()]
    except OSError as error:
        raise SideFailure(Status.CRASHED, f"{file.path}: {error.strerror}; expected to read {_FILE_BYTES >> 20} MiB from it") from error
    finally:
        file.path.unlink(missing_ok=True)
    findings.keep("storage_read", "bytes/s", ways)


def _read_whole(path: Path, readers: int) -> None:
    with path.open("rb", buffering=0) as file, ThreadPoolExecutor(readers) as pool:
        parts = [range(first * _READ_BYTES, _FILE_BYTES, readers * _READ_BYTES) for first in range(readers)]
        list(pool.map(lambda starts: _read_part(file.fileno(), starts), parts))


def _read_part(descriptor: int, starts: Sequence[int]) -> None:
    buffer = bytearray(_READ_BYTES)
    for start in starts:
        os.preadv(descriptor, [buffer], start)


def _last_cache_bytes() -> int:
    """Size of the largest cache of the first CPU; 0 where the kernel does not tell."""
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    units = {"K": 1 << 10, "M": 1 << 20}
    return max((int(size[:-1]) * units[size[-1]] for size in sizes), default=0)
