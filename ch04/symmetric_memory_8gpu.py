"""All-reduces of growing messages over the GPUs of one host: by NCCL, in one shot and in two over symmetric memory. Checked, then timed.

./setup.sh python -m torch.distributed.run --standalone --nproc-per-node 8 ch04/symmetric_memory_8gpu.py

As many processes as there are GPUs; without GPUs any number is checked, with gloo, and nothing is timed. Ends with 1 for a wrong sum.
"""

import os
import sys

import optimized_symmetric_memory as one_shot
import optimized_symmetric_memory_two_shot as two_shot
import torch
import torch.distributed as dist
from shared_peer_memory import PeerMemory

KILOBYTES = (16, 64, 256, 1024, 4096, 16384, 65536)
WARM, CALLS = 10, 50


def microseconds(call):
    """The mean time of a call among many, of the slowest rank."""
    for _ in range(WARM):
        call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    dist.barrier()
    begin.record()
    for _ in range(CALLS):
        call()
    end.record()
    end.synchronize()
    slowest = torch.tensor(1e3 * begin.elapsed_time(end) / CALLS, device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def main(device):
    """One line of all three per size on rank 0; how many of this rank's sums are wrong."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    wrong = 0
    for size in KILOBYTES if device.type == "cuda" else KILOBYTES[:3]:
        draw = torch.Generator().manual_seed(size)  # whole numbers, whose sums BF16 holds
        parts = torch.randint(-8, 9, (ranks, 512 * size), generator=draw).to(device, torch.bfloat16)
        mine, total, memory = parts[rank], torch.empty_like(parts[rank]), PeerMemory(parts[rank].shape, parts.dtype, device)
        ways = {
            "NCCL" if device.type == "cuda" else "gloo": lambda mine=mine, total=total: dist.all_reduce(total.copy_(mine)),
            "one shot": lambda mine=mine, total=total, memory=memory: one_shot.all_reduce(memory, mine, total),
            "two shot": lambda mine=mine, total=total, memory=memory: two_shot.all_reduce(memory, mine, total, rank, ranks),
        }
        told = []
        for name, call in ways.items():
            call()
            wrong += not torch.equal(total.float(), parts.float().sum(0))
            told.append(f"{name} {microseconds(call):7.1f} us" if device.type == "cuda" else f"{name} checked")
        if rank == 0:
            print(f"{size:6} KB: {', '.join(told)}", flush=True)
    return wrong


if __name__ == "__main__":
    os.environ |= {"TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NCCL_NVLS_ENABLE": "0"}  # a host's GPUs may be shared
    on_gpu = torch.cuda.is_available()
    where = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(where)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    found = main(where)
    dist.destroy_process_group()
    sys.exit(1 if found else 0)
