"""A batch in memory of its own, which nobody has written yet."""

import mmap
import resource

import torch


def page_faults():
    """How many pages the kernel has given to this process without reading a disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def collated(dataset, order, advice, faults):
    """The samples of `dataset` in that order, in a new mapping that `advice`, an argument of madvise(2), is given to.

    glibc's malloc does the same for a block this large. The harness has malloc keep freed blocks, hence the mapping by hand.
    `faults` is told how many page faults that took.
    """
    before = page_faults()
    pages = mmap.mmap(-1, dataset.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(advice)
    batch = torch.index_select(dataset, 0, order, out=torch.frombuffer(pages, dtype=dataset.dtype).view_as(dataset))
    faults[0] = page_faults() - before
    return batch
