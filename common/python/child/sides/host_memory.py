"""Inputs and outputs in the host's memory: where they are allocated, and how values that were drawn on the device get there.

A draw on the host is slow: 256 MiB on one thread take 0.33 s. So the device draws, a chunk at a time, into one buffer that is copied.

A thread that sees new values early could copy them to the device before the clock starts. So a rewrite may hold words back: one of
each 4 KiB, at a place drawn anew, has the value of another until it is written, right before the start event. Who copied early has wrong
values, and to find them must read everything again. A small input is held back whole.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch

from common.python.child.device import driver
from common.python.pairs.workload import Where

# Captured before any side is imported, so a side that patches torch patches nothing here.
_empty = torch.empty
_as_strided = torch.Tensor.as_strided
_copy = torch.Tensor.copy_

_CHUNK = 1 << 22  # elements
_WIDEST_BYTES = 8  # of an element
_WORD_BYTES = 8
_WORDS_APART = 4096 // _WORD_BYTES
_SMALL_BYTES = 1 << 20


def empty_in(where: Where, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Memory in that place, which nobody has written; where `device` is a CPU, all places are its ordinary memory."""
    if where == "device" or device.type == "cpu":
        return _empty(shape, dtype=dtype, device=device)
    return _empty(shape, dtype=dtype, pin_memory=where == "pinned")


def place_of(tensor: torch.Tensor) -> Where:
    """Where a tensor lies, on a machine with a GPU."""
    return "device" if tensor.is_cuda else "pinned" if tensor.is_pinned() else "pageable"


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor, in its storage. A dimension of one element may have any stride, which a view of bytes may not."""
    return _as_strided(tensor.detach(), (tensor.numel(),), (1,)).view(torch.uint8)


@dataclass(frozen=True)
class LateWords:
    """64-bit words that are yet to be written: at `positions` of `words`, in the host's memory, `values`.

    What is to be written lies on the device where that writes pinned memory, and else on the host.
    """

    words: torch.Tensor
    positions: torch.Tensor
    values: torch.Tensor

    @property
    def is_pinned(self) -> bool:
        """Whether a kernel can write them."""
        return self.positions.is_cuda

    def write(self) -> None:
        """Write them from the host."""
        self.words[self.positions] = self.values


class HostWriter:
    """Writes into the host's memory what `device` makes. The same chunks are made wherever they go, so the values are the same."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def write(self, to: torch.Tensor, make: Callable[[int, torch.Tensor], object], late: list[LateWords] | None = None) -> None:
        """Queue that `make(start, part)` makes elements from `start` on, a part at a time, and that they are copied to `to`.

        With `late`, words are held back and listed there, if `to` lies on the host of a GPU. `to` is contiguous.
        """
        flat = to.detach().view(-1)
        for start in range(0, flat.numel(), _CHUNK):
            target = flat[start : start + _CHUNK]
            part = _buffer(self._device)[: target.numel() * to.itemsize].view(to.dtype)
            make(start, part)
            if late is not None and to.device != part.device:
                late += hold_back(part, target, small=flat.numel() * to.itemsize <= _SMALL_BYTES)
            _copy(target, part, non_blocking=True)

    def wait(self) -> None:
        """Wait until what was queued has been written."""
        if self._device.type == "cuda":
            torch.cuda.current_stream().synchronize()


def hold_back(part: torch.Tensor, target: torch.Tensor, *, small: bool) -> list[LateWords]:
    """Give words of `part` the values of others of them, and say what is to be written to `target` later.

    All words of a `small` input, and else one of each 4 KiB. What is left behind the last whole word is not held back.
    """
    count = part.numel() * part.itemsize // _WORD_BYTES
    if count == 0:
        return []
    words, to = (bytes_of(each)[: count * _WORD_BYTES].view(torch.int64) for each in (part, target))
    positions = torch.arange(0, count, 1 if small else _WORDS_APART, device=part.device)
    if not small:
        positions += torch.randint(_WORDS_APART, positions.shape, device=part.device, generator=_secret(part.device))
        positions.clamp_(max=count - 1)
    values = words[positions]
    words[positions] = values.roll(1)
    if target.device.type == "cpu" and place_of(target) == "pageable":
        positions, values = positions.cpu(), values.cpu()
    return [LateWords(to, positions, values)]


@functools.cache
def _secret(device: torch.device) -> torch.Generator:
    """No request has its seed: no side can know which words come late."""
    return torch.Generator(device).manual_seed(int.from_bytes(os.urandom(7), "little"))


@functools.cache
def _buffer(device: torch.device) -> torch.Tensor:
    """What values are made in: outside torch's allocator, so that no side's memory is counted or placed differently."""
    size = _CHUNK * _WIDEST_BYTES
    if device.type == "cpu":
        return _empty(size, dtype=torch.uint8)
    address = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return torch.as_tensor(_Allocated(address.value, size), device=device)


class _Allocated:
    """Device memory as torch takes it from others. Source: CUDA Array Interface, version 3."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}
