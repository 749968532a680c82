"""Baseline: NCCL's all-reduce, in place, one call per message."""

import torch
import torch.distributed as dist


def prepare(partial):
    total = torch.empty_like(partial)
    messages = list(total)

    def step():
        total.copy_(partial)
        for message in messages:
            dist.all_reduce(message)
        return total

    return step
