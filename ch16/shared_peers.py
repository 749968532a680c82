"""Memory that every rank can read: PyTorch's symmetric memory on GPUs, a shared file on a CPU."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist


def peer_memory(elements, dtype, device, rank, ranks):
    """A buffer on each rank: this rank's, how this rank sees each peer's, and a barrier in the order of the current stream.

    What a rank writes before the barrier, peers read after it.
    """
    if device.type == "cuda":
        return _symmetric(elements, dtype, device, rank, ranks)
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if Path("/dev/shm").is_dir() else None, prefix="peers_") as file:
        names = [""] * ranks
        dist.all_gather_object(names, file.name)
        seen = [torch.from_file(name, shared=True, size=elements, dtype=dtype) for name in names]
        dist.barrier()  # all have it mapped, so the name may go
    return seen[rank], seen, dist.barrier


def _symmetric(elements, dtype, device, rank, ranks):
    import torch.distributed._symmetric_memory as symmetric

    mine = symmetric.empty((elements,), dtype=dtype, device=device)
    handle = symmetric.rendezvous(mine, dist.group.WORLD)
    offset = (mine.data_ptr() - handle.buffer_ptrs[rank]) // mine.element_size()  # of the buffer in its allocation
    return mine, [handle.get_buffer(peer, (elements,), dtype, offset) for peer in range(ranks)], handle.barrier
