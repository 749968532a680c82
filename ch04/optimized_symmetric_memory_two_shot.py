"""Optimized: each rank adds up one share, and peers load that."""

# predicts: optimized 2.24 ms = messages * 14e-6 on h100  (a guess: as one shot, and a third barrier and a copy that is launched)
# proves: kernel two_shot_all_reduce
# proves: launches in nccl == 0
import torch
from shared_peer_memory import PeerMemory


def all_reduce(memory, message, total, rank, ranks):
    """Place `message`, meet, add up one share of all ranks' messages, meet, and load the other shares. On a GPU a copy and one kernel."""
    memory.mine.copy_(message)
    if message.is_cuda:
        torch.ops.symm_mem.two_shot_all_reduce_out(memory.mine, "sum", memory.group, total)
        return
    memory.barrier()
    shares = [buffer.view(-1).chunk(ranks) for buffer in memory.of]
    shares[rank][rank].copy_(torch.stack([each[rank] for each in shares]).sum(dim=0))
    memory.barrier()
    torch.cat([shares[peer][peer] for peer in range(ranks)], out=total.view(-1))
    memory.barrier()


def prepare(partial, rank, ranks):
    memory = PeerMemory(partial.shape[1:], partial.dtype, partial.device)
    total = torch.empty_like(partial)
    messages = list(zip(partial, total, strict=True))

    def step():
        for message, answer in messages:
            all_reduce(memory, message, answer, rank, ranks)
        return total

    return step
