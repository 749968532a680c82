"""Baseline: pages are gathered on the GPU, and reach the peer through the host's memory."""
# allows: sync

import torch
import torch.distributed as dist

from common.serving.transfer import Window


def prepare(pool, table, places, rank):
    layers, count, device = len(pool), len(table), pool.device
    mine, handle = Window.create((layers, count, pool.shape[2]), pool.dtype, torch.device("cpu"))
    handles = [None, None]
    dist.all_gather_object(handles, handle)
    mine, theirs = mine.pinned(), Window.open(handles[1 - rank]).pinned()
    landed = torch.empty((2, layers, count, pool.shape[2]), dtype=pool.dtype, device=device)
    expected = 0

    def step():
        nonlocal expected
        gathered = pool.index_select(1, table)
        theirs.pages.copy_(gathered, non_blocking=True)
        landed[rank].index_copy_(1, places, gathered)
        if device.type == "cuda":
            torch.cuda.current_stream().synchronize()  # the peer must not be told before all is in the host's memory
        theirs.counter.add_(count)
        expected += count
        mine.wait(expected)
        landed[1 - rank].index_copy_(1, places, mine.pages.to(device, non_blocking=True))
        return landed.flatten(0, 1)

    return step
