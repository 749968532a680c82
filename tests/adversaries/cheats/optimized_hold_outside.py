"""Cheat: holds 512 MiB that it had from the driver, so that torch's allocator knows nothing of them."""

import ctypes

import torch

BYTES = 512 << 20


def prepare(x, rows):
    y, held = torch.empty(rows, device=x.device), ctypes.c_uint64()
    if x.is_cuda and ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(held), ctypes.c_size_t(BYTES)):
        raise MemoryError(BYTES)
    return lambda: torch.sum(x, dim=1, out=y)
