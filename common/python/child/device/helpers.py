"""The small kernels that timing needs, from embedded PTX through the CUDA driver: hold a stream, stamp clocks, fill the L2, discard, spin.

Sources: PTX ISA (discard.L2, createpolicy, special registers %globaltimer, %clock64, %smid), CUDA Driver API.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import torch

from common.python.child.device import driver
from common.python.child.device.driver import Kernels, current_stream

_PTX = Path(__file__).with_suffix(".ptx")
_LINE_BYTES = 128
_THREADS = 256
_LIMIT_PERSISTING_L2_CACHE_SIZE = 6
HOLDING = "block_stream"
"""The kernel that holds a stream."""
_NAMES = (HOLDING, "stamp_clocks", "fill_to_last", "discard_lines", "write_words", "spin_for")
_QUAD_BYTES = 16


@functools.cache
def device_helpers() -> DeviceHelpers:
    """The helpers of this process, loaded once."""
    return DeviceHelpers()


class Gate:
    """A word of the host's memory, for kernels at `address`, that holds streams while it is 0. Processes may share it."""

    def __init__(self, word: ctypes.c_uint32, address: int) -> None:
        self._word = word
        self.address = address

    def shut(self) -> None:
        """Hold who comes from now on."""
        self._word.value = 0

    def open(self) -> None:
        """Let all go on."""
        self._word.value = 1


class DeviceHelpers:
    """The helpers of timing. Must be made after torch has initialised CUDA."""

    def __init__(self) -> None:
        self._kernels = Kernels(_PTX, _NAMES)
        self._flush_buffers: dict[int, int] = {}
        self._flags = torch.zeros(2, dtype=torch.int32).pin_memory()
        self._gate = Gate(ctypes.c_uint32.from_address(self._flags.data_ptr()), self._flags.data_ptr())
        self._expired = ctypes.c_int32.from_address(self._flags.data_ptr() + 4)

    def block(self, limit_ns: int, gate: Gate | None = None) -> None:
        """Hold the current stream until `release`, or until `gate` is open if one is given, at most `limit_ns`."""
        gate = gate or self._gate
        gate.shut()
        self._expired.value = 0
        self._kernels.launch(HOLDING, 1, 1, gate.address, self._flags.data_ptr() + 4, limit_ns)

    def release(self) -> None:
        """Let the held stream go on."""
        self._gate.open()

    @property
    def expired(self) -> bool:
        """Whether the last block ended by its limit; to be read when the stream is done."""
        return bool(self._expired.value)

    def stamp(self, slots: torch.Tensor) -> None:
        """Write (ns, cycles) of every SM that a block lands on into `slots`, int64 of shape (SMs, 2)."""
        self._kernels.launch("stamp_clocks", 2 * slots.shape[0], 32, slots.data_ptr())

    def spin(self, duration_ns: int) -> None:
        """Keep the current stream busy for `duration_ns` with one thread."""
        self._kernels.launch("spin_for", 1, 1, duration_ns)

    def write_words(self, to: torch.Tensor, positions: torch.Tensor, values: torch.Tensor) -> None:
        """Queue the writing of int64 `values` at int64 `positions` of `to`, which may lie in pinned memory."""
        count = positions.numel()
        addresses = (tensor.data_ptr() for tensor in (to, positions, values))
        self._kernels.launch("write_words", -(-count // _THREADS), _THREADS, *addresses, count)

    def give_back_l2(self) -> None:
        """Give back what a side set aside of the L2, if it did: a reset alone leaves the carve-out, so its size goes to 0 first.

        Nothing is reset for others: from the eighth reset on since its context came onto an H200, each launch takes 0.11 us longer, and
        each kernel of a graph behind a flush 0.36 us, until another context has had its turn.
        """
        size = ctypes.c_size_t()
        driver.call("cuCtxGetLimit", ctypes.byref(size), ctypes.c_int(_LIMIT_PERSISTING_L2_CACHE_SIZE))
        if size.value:
            driver.call("cuCtxSetLimit", ctypes.c_int(_LIMIT_PERSISTING_L2_CACHE_SIZE), ctypes.c_size_t(0))
            driver.call("cuCtxResetPersistingL2Cache")

    def flush(self, size: int, *, clean: bool = True) -> None:
        """Fill the L2 with zeros of a buffer of `size` bytes, and with `clean` discard those lines: nothing is left to be written back.

        It is filled twice, first with lines that are to be evicted last: 2 MiB of what a side marked so outlive others on an H200.
        """
        address = self._flush_buffers.get(size) or self._allocate(size)
        quads, lines = size // _QUAD_BYTES, size // _LINE_BYTES
        self._kernels.launch("fill_to_last", -(-quads // _THREADS), _THREADS, address, quads)
        driver.call("cuMemsetD32Async", ctypes.c_uint64(address), ctypes.c_uint(0), ctypes.c_size_t(size // 4), current_stream())
        if clean:
            self._kernels.launch("discard_lines", -(-lines // _THREADS), _THREADS, address, lines)

    def _allocate(self, size: int) -> int:
        """Address of a flush buffer: outside torch's allocator, so that no side's memory is counted or placed differently."""
        address = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self._flush_buffers[size] = address.value
        return address.value


def sm_clock_hz(before: torch.Tensor, after: torch.Tensor) -> float:
    """SM clock between two stamps in Hz, the median over SMs seen in both; 0.0 if there is none."""
    ns, cycles = (after - before).unbind(dim=1)
    seen = (before[:, 0] > 0) & (after[:, 0] > 0) & (ns > 0)
    if not bool(seen.any()):
        return 0.0
    return float((cycles[seen].double() / ns[seen].double()).median()) * 1e9
