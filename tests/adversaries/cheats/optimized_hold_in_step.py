"""Cheat: takes 512 MiB from the driver in each step and gives them back before it returns."""

import ctypes

import torch

BYTES = 512 << 20


def prepare(x, rows):
    y, held = torch.empty(rows, device=x.device), ctypes.c_uint64()
    if not x.is_cuda:
        return lambda: torch.sum(x, dim=1, out=y)
    driver = ctypes.CDLL("libcuda.so.1")

    def step():
        if driver.cuMemAlloc_v2(ctypes.byref(held), ctypes.c_size_t(BYTES)):
            raise MemoryError(BYTES)
        torch.sum(x, dim=1, out=y)
        driver.cuMemFree_v2(held)
        return y

    return step
