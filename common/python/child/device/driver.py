"""The CUDA driver through ctypes: calls that raise, and kernels from a PTX file on torch's context and stream.

Source: CUDA Driver API.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

# Captured before any side is imported.
_current_stream = torch.cuda.current_stream

_PORTABLE, _MAPPED = 1, 2  # CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP


class DriverError(Exception):
    """A CUDA driver call failed."""


@functools.cache
def library() -> ctypes.CDLL:
    """The driver's library. Raises OSError where there is none."""
    return ctypes.CDLL("libcuda.so.1")


def call(name: str, *arguments: Any) -> None:
    """Call the driver, in a process in which torch has initialised CUDA. Raises DriverError."""
    code = library()[name](*arguments)
    if code:
        text = ctypes.c_char_p()
        library().cuGetErrorName(ctypes.c_int(code), ctypes.byref(text))
        raise DriverError(f"{name} returned {code} ({(text.value or b'unknown').decode()}); expected success")


def record_behind_all(event: torch.cuda.Event) -> bool:
    """Record an event behind whatever this context has been given to do, on any stream. False where the driver cannot (before 12.5).

    `event` must have been recorded before, or torch has not made it.
    """
    context = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(context))
    try:
        return bool(library().cuCtxRecordEvent(context, ctypes.c_void_p(event.cuda_event)) == 0)
    except AttributeError:
        return False


def mapped(word: ctypes.c_uint32) -> int:
    """The address by which kernels find `word`, whose page of memory, which may be shared, stays in place from now on."""
    address, found = ctypes.c_void_p(ctypes.addressof(word)), ctypes.c_uint64()
    call("cuMemHostRegister_v2", address, ctypes.c_size_t(ctypes.sizeof(word)), ctypes.c_uint(_PORTABLE | _MAPPED))
    call("cuMemHostGetDevicePointer_v2", ctypes.byref(found), address, ctypes.c_uint(0))
    return found.value


def current_stream() -> ctypes.c_void_p:
    """The CUstream handle of torch's current stream, typed for calls of the CUDA driver API."""
    return ctypes.c_void_p(_current_stream().cuda_stream)


class Kernels:
    """The kernels of a PTX file, loaded into the context that torch uses. Must be made after torch has initialised CUDA."""

    def __init__(self, ptx: Path, names: Sequence[str]) -> None:
        self._module = ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(self._module), ptx.read_bytes() + b"\0")
        self.functions = {name: ctypes.c_void_p() for name in names}
        for name, function in self.functions.items():
            call("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())

    def launch(self, name: str, blocks: int, threads: int, *arguments: int) -> None:
        """Queue a kernel, all of whose parameters are u64, on the current stream."""
        values = [ctypes.c_uint64(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        call("cuLaunchKernel", *self.launch_arguments(name, blocks, threads), pointers, None)

    def launch_arguments(self, name: str, blocks: int, threads: int) -> list[Any]:
        """What cuLaunchKernel takes before a kernel's own parameters."""
        grid = [ctypes.c_uint(count) for count in (blocks, 1, 1, threads, 1, 1, 0)]
        return [self.functions[name], *grid, current_stream()]
