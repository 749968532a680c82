"""Blocks of keys and values moved between pools: one-sided writes, and a counter where they land that says how many have.

What is written into a `Window` of another process is there when its counter says so; the owner takes no part. On a GPU a window is
opened by CUDA IPC, on a CPU it is a shared file. The design is that of paged writes with an immediate counter (arXiv:2510.27656).
"""

from __future__ import annotations

import importlib
import math
import tempfile
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from common.serving.kv_blocks import KvBlocks
from common.serving.transfer_nixl import NixlWindow

_GLANCE_S = 2e-6
_WAIT_S = 60.0


def push(source: KvBlocks, target: KvBlocks, sequence: Hashable) -> None:
    """Write the blocks of `sequence` into another pool of the same device, in the order of the current stream.

    `target` must have room, or have reserved it; the sequence has the source's length there then. Raises OutOfBlocks.
    """
    fetch(target, sequence, source, source.table(sequence), source.length(sequence))


def fetch(target: KvBlocks, sequence: Hashable, source: KvBlocks, table: Sequence[int], length: int) -> None:
    """Copy `length` tokens from the blocks `table` of `source`, whose sequences another process may know, into a new `sequence`.

    Nothing waits: it happens in the order of the current stream. Raises OutOfBlocks.
    """
    used = -(-length // source.block_tokens)
    target.append(sequence, length)
    tables = torch.tensor([table[:used], target.table(sequence)[:used]]).to(source.keys.device, non_blocking=True)
    for theirs, mine in ((source.keys, target.keys), (source.values, target.values)):
        if theirs is not None and mine is not None:
            mine.index_copy_(1, tables[1], theirs.index_select(1, tables[0]))


@dataclass(frozen=True)
class Handle:
    """What another process needs to open a window; it can be pickled."""

    pages: Any
    counter: Any


class Window:
    """Memory that a peer writes pages into: `pages` [layers, pages, elements], and `counter`, int64 [1], of pages that have landed.

    One peer writes into a window: additions of several to its counter would not be atomic.
    """

    def __init__(self, pages: torch.Tensor, counter: torch.Tensor) -> None:
        self.pages = pages
        self.counter = counter

    @classmethod
    def create(cls, shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device) -> tuple[Window, Handle]:
        """A window of this process, all zeros, and the handle by which a peer opens it."""
        made = [_created(size, kind, device) for size, kind in ((shape, dtype), ((1,), torch.int64))]
        return cls(made[0][0], made[1][0]), Handle(made[0][1], made[1][1])

    @classmethod
    def open(cls, handle: Handle) -> Window:
        """The window of a peer, which must live on while this one is used."""
        return cls(_opened(handle.pages), _opened(handle.counter))

    def part(self, first: int, layers: int) -> Window:
        """`layers` of this window from `first` on, with the same counter."""
        return Window(self.pages[first : first + layers], self.counter)

    def write(self, source: torch.Tensor, pages: torch.Tensor, places: torch.Tensor) -> None:
        """Pages `pages` of `source` [layers, pages, elements] into `places` of this window, then add their number to its counter.

        Nothing waits: both happen in the order of the current stream. Indices are int64, on the source's device.
        """
        self.pages.index_copy_(1, places, source.index_select(1, pages))
        self.counter.add_(len(pages))

    def wait(self, count: int) -> None:
        """Have the current stream, or on a CPU the caller, wait until the owner's `counter` is at least `count`.

        Raises TimeoutError on a CPU after 60 s.
        """
        if self.counter.device.type == "cuda":
            _stream_waits(self.counter, count)
            return
        deadline = time.monotonic() + _WAIT_S
        while int(self.counter) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"found {int(self.counter)} pages after {_WAIT_S:g} s; expected {count}")
            time.sleep(_GLANCE_S)


def create_window(backend: str, shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device) -> tuple[Any, Any]:
    """A window of this process, and the handle that its peer passes to `open`. `backend` is ipc, or nixl where that is installed.

    Raises ValueError for another one, and RuntimeError where NIXL is not installed.
    """
    if backend == "ipc":
        return Window.create(shape, dtype, device)
    if backend == "nixl":
        window = NixlWindow(shape, dtype, device)
        return window, window.handle
    raise ValueError(f"backend={backend}; expected ipc or nixl")


def _created(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, Any]:
    if device.type == "cuda":
        from torch.multiprocessing.reductions import reduce_tensor

        tensor = torch.zeros(shape, dtype=dtype, device=device)
        return tensor, reduce_tensor(tensor)
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.NamedTemporaryFile(dir=folder, prefix="window_", delete=False) as file:
        name = file.name
    handle = (_mapped, (name, shape, dtype))
    return _mapped(name, shape, dtype), handle


def _mapped(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.from_file(name, shared=True, size=math.prod(shape), dtype=dtype).view(shape)


def _opened(handle: tuple[Callable[..., torch.Tensor], tuple[Any, ...]]) -> torch.Tensor:
    """The tensor of a handle. A file is unlinked: the two processes that need it have it mapped now.

    Memory of another GPU is a tensor of the current one: its kernels write there, over NVLink or PCIe.
    """
    function, arguments = handle
    if function is _mapped:
        tensor = _mapped(*arguments)
        Path(arguments[0]).unlink()
        return tensor
    device_at = 6  # of the arguments of torch.multiprocessing.reductions.rebuild_cuda_tensor
    return function(*arguments[:device_at], torch.cuda.current_device(), *arguments[device_at + 1 :])


def _stream_waits(counter: torch.Tensor, count: int) -> None:
    """The current stream waits until the 64-bit word of `counter` is at least `count`. Raises RuntimeError where the driver cannot."""
    driver = importlib.import_module("cuda.bindings.driver")
    stream = torch.cuda.current_stream(counter.device).cuda_stream
    flags = int(driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ)
    can_flush = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES
    status, flushes = driver.cuDeviceGetAttribute(can_flush, counter.device.index)
    if int(status) == 0 and flushes:  # a device that may reorder what a peer or a NIC wrote before the counter
        flags |= int(driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_FLUSH)
    (status,) = driver.cuStreamWaitValue64(stream, counter.data_ptr(), count, flags)
    if int(status) != 0:
        raise RuntimeError(f"the driver answered {status.name}; expected success of a stream that waits for a counter")
