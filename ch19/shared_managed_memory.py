"""Managed memory that stays with the CPU: a GPU behind a coherent link (NVLink-C2C) reads and writes it in place."""

import ctypes
import math
from pathlib import Path

import torch

ATTACH_GLOBAL, PREFERRED_LOCATION, ACCESSED_BY, CPU = 1, 3, 5, -1  # of cuda.h: CUmemAttach_flags, CUmem_advise, CU_DEVICE_CPU
NODES = Path("/sys/devices/system/node")


def free_on_host(nodes=NODES):
    """Bytes of the CPU's memory that are free or hold files. On Grace the GPU's memory is a NUMA node as well: one without CPUs."""
    free = 0
    for node in nodes.glob("node[0-9]*"):
        if (node / "cpulist").read_text(encoding="ascii").strip():
            lines = (line.split() for line in (node / "meminfo").read_text(encoding="ascii").splitlines())
            sizes = {name: 1024 * int(number) for _, _, name, number, *_ in lines}
            free += sizes["MemFree:"] + sizes["Active(file):"] + sizes["Inactive(file):"]
    return free or available()


def available():
    """What the kernel counts as available on all nodes, for a system that shows none."""
    with Path("/proc/meminfo").open(encoding="ascii") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))


class ManagedMemory:
    """`size` bytes, zeroed by the CPU, so that their pages lie there. Pages stay there: that is their preferred location."""

    def __init__(self, size, device):
        if size > (free := free_on_host()):  # what does not fit would move to and fro, or end other processes
            raise MemoryError(f"managed memory: found {free} bytes of the CPU free; expected the {size} that are asked for")
        self._driver, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
        self._call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_uint(ATTACH_GLOBAL))
        self._address = address
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address.value, False), "version": 3}
        for advice, place in ((PREFERRED_LOCATION, CPU), (ACCESSED_BY, device.index or 0)):
            self._call("cuMemAdvise", address, ctypes.c_size_t(size), advice, place)
        ctypes.memset(address.value, 0, size)

    def __del__(self):
        if "_address" in vars(self):
            self._call("cuMemFree_v2", self._address)

    def _call(self, name, *arguments):
        if error := self._driver[name](*arguments):
            raise RuntimeError(f"{name}: found CUDA's error {error}; expected 0")


def managed(shape, dtype, device):
    """Zeros on `device`, whose memory is the CPU's; on a CPU, ordinary memory."""
    if device.type != "cuda":
        return torch.zeros(shape, dtype=dtype, device=device)
    size = math.prod(shape) * dtype.itemsize
    return torch.as_tensor(ManagedMemory(size, device), device=device).view(dtype).view(shape)
