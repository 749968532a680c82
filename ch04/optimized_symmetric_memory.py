"""Optimized: one kernel loads the peers' sums from their memory."""

# predicts: baseline 3.36 ms = messages * 21e-6 on h100  (a guess: two GPUs, a small NCCL all-reduce from Python 21 us)
# predicts: optimized 1.60 ms = messages * 10e-6 on h100  (a guess: two barriers across NVLink, one read of a peer, one operation)
# proves: kernel one_shot_all_reduce
# proves: launches in nccl == 0
import torch
from shared_peer_memory import PeerMemory


def all_reduce(memory, message, total):
    """Place `message` where peers can load it, meet them, add up what lies with each rank, meet again: on a GPU one kernel."""
    if message.is_cuda:
        torch.ops.symm_mem.one_shot_all_reduce_copy_out(memory.mine, message, "sum", memory.group, total)
        return
    memory.mine.copy_(message)
    memory.barrier()
    torch.sum(torch.stack(memory.of), dim=0, out=total)
    memory.barrier()


def prepare(partial):
    memory = PeerMemory(partial.shape[1:], partial.dtype, partial.device)
    total = torch.empty_like(partial)
    messages = list(zip(partial, total, strict=True))

    def step():
        for message, answer in messages:
            all_reduce(memory, message, answer)
        return total

    return step
