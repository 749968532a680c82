"""Memory that NCCL knows: allocated by its allocator and registered as a symmetric window, in which ranks address each other's part."""

from contextlib import contextmanager

import torch
import torch.distributed as dist


@contextmanager
def registered(shape, like):
    """An uninitialized tensor of `shape` in registered memory, with the dtype of `like`; ordinary memory where `like` is on a CPU.

    Collective: all ranks call it in the same order with the same shape. Source: torch.distributed, ProcessGroupNCCL.register_mem_pool.
    """
    if not like.is_cuda:
        yield like.new_empty(shape)
        return
    nccl = dist.group.WORLD._get_backend(like.device)
    pool = torch.cuda.MemPool(nccl.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        buffer = like.new_empty(shape)
    nccl.register_mem_pool(pool, symm=True)  # after all allocations: a window is made for what the pool holds now
    try:
        yield buffer
    finally:
        torch.cuda.synchronize()
        nccl.deregister_mem_pool(pool)
