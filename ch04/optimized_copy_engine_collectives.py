"""Optimized: copy engines push the shard, so SMs stay free."""

# predicts: baseline 1.64 ms = 2 * tokens * width**2 / bf16 + 24 / 132 * width**2 * blocks / 300e9 on h100  (two GPUs; guesses: 24 SMs)
# predicts: optimized 1.42 ms = 2 * tokens * width**2 / bf16 + 30e-6 on h100  (two GPUs; copies of 402 MB end sooner)
# proves: calls cudaMemcpyAsync >= 2
# proves: launches in nccl == 0
# has: kernels <= 3
# has: overlap >= 0.5
import contextlib

import torch
from shared_peer_memory import PeerMemory


def prepare(x, w, shard, rank, ranks):
    memory = PeerMemory((ranks, *shard.shape), shard.dtype, shard.device)
    y = torch.empty_like(x)
    side = torch.cuda.Stream() if x.is_cuda else None

    def push():
        """Into the same place on each rank, the next one first: a copy between contiguous tensors is a cudaMemcpyAsync, no kernel."""
        for i in range(ranks):
            memory.of[(rank + 1 + i) % ranks][rank].copy_(shard)
        memory.barrier()  # all shards have arrived

    def step():
        # All have begun this step: what the last one gathered may be overwritten. Beside the product the barrier might find no SM free.
        memory.barrier()
        if side:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side) if side else contextlib.nullcontext():
            push()
        torch.mm(x, w, out=y)
        if side:
            torch.cuda.current_stream().wait_stream(side)
        return y, memory.mine

    return step
