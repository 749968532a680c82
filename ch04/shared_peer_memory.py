"""A buffer on every rank that all ranks can address: symmetric memory on GPUs, a mapped file on a CPU.

Source: torch.distributed._symmetric_memory, whose CUDA backend maps a peer's memory into this process (cuMemMap). No multicast is used.
"""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric


class PeerMemory:
    """One buffer of `shape` a rank. Made by all ranks at once, in the same order, for it is a collective.

    `mine` is this rank's buffer. `of` are those of all ranks, by rank, as tensors that this rank can read and write.
    """

    def __init__(self, shape, dtype, device):
        self.group = dist.group.WORLD.group_name
        if device.type == "cuda":
            # What symmetric.empty calls, without its pool: the all-reduces of torch.ops.symm_mem read a buffer from its allocation's start.
            strides = torch.empty(shape, device="meta").stride()
            self.mine = symmetric._SymmetricMemory.empty_strided_p2p(shape, strides, dtype, device)
            self._handle = symmetric.rendezvous(self.mine, self.group)
            self.of = [self._handle.get_remote_tensor(rank, self.mine.shape, dtype) for rank in range(dist.get_world_size())]
        else:
            self._handle = None
            self.of = list(_mapped(shape, dtype))
            self.mine = self.of[dist.get_rank()]

    def barrier(self):
        """Wait until every rank is here: on a GPU in the order of the current stream, without the host. Writes before it are then seen."""
        if self._handle is None:
            dist.barrier()
        else:
            self._handle.barrier()


def _mapped(shape, dtype):
    """One file of all ranks' buffers, which has no name any more once every rank has mapped it."""
    name = [tempfile.mkstemp()[1] if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name)
    ranks = dist.get_world_size()
    numel = ranks * torch.Size(shape).numel()
    whole = torch.from_file(name[0], shared=True, size=numel, dtype=dtype).view(ranks, *shape)
    dist.barrier()
    if dist.get_rank() == 0:
        Path(name[0]).unlink()
    return whole
