"""Collectives without NCCL, for the bandwidth suite: all-reduces over symmetric memory, and an all-gather that copy engines push."""

import optimized_symmetric_memory as one_shot
import optimized_symmetric_memory_two_shot as two_shot
import torch
from shared_peer_memory import PeerMemory

PEER = ("one_shot_all_reduce", "two_shot_all_reduce", "pushed_all_gather")


def reach_each_other(here):
    """Whether all ranks are on this host, and each GPU can address every other's memory."""
    if here.ranks != here.local_ranks or not here.on_gpu:
        return here.ranks == here.local_ranks
    pairs = [(one, other) for one in range(here.ranks) for other in range(here.ranks) if one != other]
    return all(torch.cuda.can_device_access_peer(one, other) for one, other in pairs)


def prepared(name, here, count):
    """A call of collective `name` on `count` floats, whose rank r sends r + 1; what it fills, and the values of its equal parts."""
    n, r = here.ranks, here.rank
    if name == "pushed_all_gather":
        memory = PeerMemory((n, count // n), torch.float32, here.device)
        part = torch.full((count // n,), float(r + 1), device=here.device)

        def push():
            """A copy between contiguous tensors is a cudaMemcpyAsync, no kernel; of copies to itself and to peers a rank makes n."""
            memory.barrier()  # what the last call gathered may be overwritten
            for i in range(n):
                memory.of[(r + 1 + i) % n][r].copy_(part)
            memory.barrier()  # all parts have arrived

        return push, memory.mine.view(-1), range(1, n + 1)
    memory = PeerMemory((count,), torch.float32, here.device)
    mine, total = torch.full((count,), float(r + 1), device=here.device), torch.zeros(count, device=here.device)
    if name == "one_shot_all_reduce":
        return (lambda: one_shot.all_reduce(memory, mine, total)), total, [n * (n + 1) / 2]
    return (lambda: two_shot.all_reduce(memory, mine, total, r, n)), total, [n * (n + 1) / 2]
