"""Baseline: the first write to each 4 KiB page of the batch is a page fault."""

import mmap

from shared_batch import collated


def prepare(dataset, order, faults):
    return lambda: collated(dataset, order, mmap.MADV_NORMAL, faults)
