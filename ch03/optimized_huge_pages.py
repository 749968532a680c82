"""Optimized: huge pages, one page fault per 2 MiB of the batch."""
# predicts: baseline 46.6 ms = samples * values * (4 / 8e9 + 4 / 10e9 + 4 / 4096 * 0.5e-6) on h200 (copy, zeroing and fault: assumed)
# predicts: optimized 30.3 ms = samples * values * (4 / 8e9 + 4 / 10e9 + 4 / 2**21 * 1e-6) on h200 (a larger fault: assumed)

import mmap

import torch


def prepare(dataset, order):
    def step():
        pages = mmap.mmap(-1, dataset.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_HUGEPAGE)
        batch = torch.frombuffer(pages, dtype=dataset.dtype).view_as(dataset)
        return torch.index_select(dataset, 0, order, out=batch)

    return step
