"""What a script finds when torchrun has started it."""

import gc
import os
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Here:
    """This process: its number, of how many, how many of those share its host, and its device."""

    rank: int
    ranks: int
    local_ranks: int
    device: torch.device

    @property
    def on_gpu(self) -> bool:
        """Whether it has a GPU of its own."""
        return self.device.type == "cuda"


@contextmanager
def joined():
    """Start torch.distributed, NCCL where each process of the host has a GPU and gloo elsewhere, and end it. Alone without torchrun.

    NVLink multicast stays off unless the environment says otherwise: see common/docs/ranks.md.
    """
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
    os.environ.setdefault("NVSHMEM_DISABLE_NVLS", "1")
    warnings.filterwarnings("ignore", "`torch.distributed", FutureWarning)  # names that torch 2.11 has and 2.13 calls old
    if "RANK" not in os.environ:
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
        os.environ.setdefault("MASTER_PORT", "0")
    local, local_ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    on_gpu = torch.cuda.is_available() and torch.cuda.device_count() >= local_ranks
    device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo", device_id=device if on_gpu else None)
    try:
        yield Here(dist.get_rank(), dist.get_world_size(), local_ranks, device)
        gc.collect()  # what still holds a group would end it after torch.distributed has ended
        dist.barrier()
    finally:
        dist.destroy_process_group()
