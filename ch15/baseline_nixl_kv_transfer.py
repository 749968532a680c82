"""Baseline: pages are gathered on the GPU, and reach the peer through the host's memory."""
# allows: sync

import torch
import torch.distributed as dist

from common.serving.transfer import Window


def prepare(pool, table, places, rank):
    shape, device = (pool.shape[0], len(table), pool.shape[2]), pool.device
    mine, handle = Window.create(shape, pool.dtype, torch.device("cpu"))
    handles = [None, None]
    dist.all_gather_object(handles, handle)
    mine, theirs = mine.pinned(), Window.open(handles[1 - rank]).pinned()
    landed = torch.empty(shape, dtype=pool.dtype, device=device)
    expected = 0

    def step():
        nonlocal expected
        theirs.pages.copy_(pool.index_select(1, table), non_blocking=True)
        if device.type == "cuda":
            torch.cuda.current_stream().synchronize()  # the peer must not be told before all is in the host's memory
        theirs.counter.add_(len(table))
        expected += len(table)
        mine.wait(expected)
        landed.index_copy_(1, places, mine.pages.to(device, non_blocking=True))
        return landed

    return step
