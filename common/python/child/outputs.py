"""An output's way from a worker to the referee: the GPU memory it lies in, lent through the driver, or a file of shared memory.

Source: CUDA Driver API, interprocess communication.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path

import torch

from common.python.child.device import driver
from common.python.child.device.driver import DriverError
from common.python.child.sides.host_memory import bytes_of
from common.python.errors import SideFailure, Status
from common.python.pairs.workload import Spec
from common.python.processes.messages import Dump

# Captured before any side is imported, so a side that patches torch patches nothing here.
_empty = torch.empty
_from_file = torch.from_file
_copy = torch.Tensor.copy_
_synchronize = torch.cuda.synchronize

_LENT_BYTES = 1 << 20  # a smaller output is sooner copied than lent
_LAZY_PEER_ACCESS = 1


class _Handle(ctypes.Structure):
    """What another process opens memory by: 64 bytes, passed by value."""

    _fields_ = [("reserved", ctypes.c_ubyte * 64)]


def dump(tensors: Mapping[str, torch.Tensor], prefix: str) -> list[Dump]:
    """Make each tensor's bytes readable for the referee; the tensors must live until it has read them.

    Those on a GPU, which is the referee's too, are lent where that is possible; the others are written to files of that `prefix`.
    """
    dumps = []
    for name, tensor in tensors.items():
        data = bytes_of(tensor)
        lent = _lend(name, data) if data.is_cuda and data.numel() >= _LENT_BYTES else None
        dumps.append(lent or _write(name, data, f"{prefix}_{name}"))
    return dumps


def read_dump(dumped: Dump, spec: Spec, device: torch.device) -> torch.Tensor:
    """A copy of the dumped tensor, on `device`; a file is removed. Raises SideFailure if its size is not the output's."""
    expected = spec.elements * spec.dtype.itemsize
    data = _read_lent(dumped, expected, device) if dumped.handle else _read_file(dumped, expected).to(device)
    return data.view(spec.dtype).view(spec.shape)


def _lend(name: str, data: torch.Tensor) -> Dump | None:
    """The tensor as memory that another process can open; None where the driver lends none of its kind."""
    _synchronize()  # the whole device: nothing that the side has queued may write here any more
    base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), _Handle()
    address = ctypes.c_uint64(data.data_ptr())
    try:
        driver.call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), address)
        driver.call("cuIpcGetMemHandle", ctypes.byref(handle), base)
    except DriverError:
        return None
    return Dump(name=name, path="", handle=bytes(handle.reserved).hex(), offset=data.data_ptr() - base.value, size=data.numel())


def _write(name: str, data: torch.Tensor, path: str) -> Dump:
    _copy(_from_file(path, shared=True, size=data.numel(), dtype=torch.uint8), data)
    return Dump(name=name, path=path)


def _read_lent(dumped: Dump, expected: int, device: torch.device) -> torch.Tensor:
    if dumped.size != expected:
        raise SideFailure(Status.WRONG_RESULT, f"output {dumped.name}: found {dumped.size} bytes; expected {expected} bytes")
    data = _empty(expected, dtype=torch.uint8, device=device)
    mapped = ctypes.c_uint64()
    handle = _Handle((ctypes.c_ubyte * 64)(*bytes.fromhex(dumped.handle)))
    try:
        driver.call("cuIpcOpenMemHandle_v2", ctypes.byref(mapped), handle, ctypes.c_uint(_LAZY_PEER_ACCESS))
    except DriverError as error:
        raise SideFailure(Status.CRASHED, f"output {dumped.name}: {error}, to read it where it lies") from error
    try:
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        driver.call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), mapped)
        if dumped.offset < 0 or dumped.offset + expected > size.value:
            found = f"{expected} bytes at {dumped.offset} of {size.value}"
            raise SideFailure(Status.WRONG_RESULT, f"output {dumped.name}: found {found}; expected them inside")
        where = (ctypes.c_uint64(data.data_ptr()), ctypes.c_uint64(mapped.value + dumped.offset))
        driver.call("cuMemcpyDtoDAsync_v2", *where, ctypes.c_size_t(expected), driver.current_stream())
        _synchronize()
    finally:
        driver.call("cuIpcCloseMemHandle", mapped)
    return data


def _read_file(dumped: Dump, expected: int) -> torch.Tensor:
    path = Path(dumped.path)
    if not path.is_file() or path.stat().st_size != expected:
        found = f"{path.stat().st_size} bytes" if path.is_file() else "no file"
        raise SideFailure(Status.WRONG_RESULT, f"output {dumped.name}: found {found}; expected {expected} bytes")
    data = _from_file(dumped.path, shared=False, size=expected, dtype=torch.uint8)
    path.unlink()
    return data
