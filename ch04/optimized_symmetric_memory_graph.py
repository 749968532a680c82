"""Optimized: the same calls of NCCL, replayed as one CUDA graph."""
# predicts: graph 1.80 ms = messages * (10.9e-6 + (2 * tokens * width - 65536) / 200e9)  (as 64 KiB of ch04:nccl_config; 200 GB/s: a guess)
# proves: launches < 0.1 x baseline

import torch
import torch.distributed as dist

from common.graph import captured


def prepare(partial):
    total = torch.empty_like(partial)
    messages = list(total)

    def reduce_all():
        total.copy_(partial)
        for message in messages:
            dist.all_reduce(message)
        return total

    replay = captured(reduce_all)
    yield replay
    replay.close()
