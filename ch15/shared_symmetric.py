"""Memory of peers that kernels can write to: PyTorch's symmetric memory, which NVLink or PCIe makes addressable from every rank."""

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric


def addresses_of(buffer, rank):
    """Where on each rank the like of this buffer lies, int64 on the device, and a handle that can wait for all ranks."""
    handle = symmetric.rendezvous(buffer, dist.group.WORLD)
    offset = buffer.data_ptr() - handle.buffer_ptrs[rank]  # of the buffer in its allocation
    return torch.tensor([start + offset for start in handle.buffer_ptrs], device=buffer.device), handle
