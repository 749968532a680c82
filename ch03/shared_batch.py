"""A batch in memory of its own, which nobody has written yet."""

import mmap

import torch


def collated(dataset, order, advice):
    """The samples of `dataset` in that order, in a new mapping that `advice`, an argument of madvise(2), is given to.

    glibc's malloc does the same for a block this large. The harness has malloc keep freed blocks, hence the mapping by hand.
    """
    pages = mmap.mmap(-1, dataset.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(advice)
    return torch.index_select(dataset, 0, order, out=torch.frombuffer(pages, dtype=dataset.dtype).view_as(dataset))
