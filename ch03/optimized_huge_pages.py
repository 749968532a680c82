"""Optimized: huge pages, one page fault per 2 MiB of the batch."""
# predicts: baseline 46.6 ms = samples * values * (4 / 8e9 + 4 / 10e9 + 4 / 4096 * 0.5e-6) on h200 (copy, zeroing and fault: assumed)
# predicts: optimized 30.3 ms = samples * values * (4 / 8e9 + 4 / 10e9 + 4 / 2**21 * 1e-6) on h200 (a larger fault: assumed)

import mmap

from shared_batch import collated


def prepare(dataset, order, faults):
    return lambda: collated(dataset, order, mmap.MADV_HUGEPAGE, faults)
