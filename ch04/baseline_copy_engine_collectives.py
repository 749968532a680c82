"""Baseline: NCCL gathers on a stream of its own, with kernels that take SMs from the product."""

import torch
import torch.distributed as dist


def prepare(x, w, shard, ranks):
    gathered = shard.new_empty(ranks, *shard.shape)
    y = torch.empty_like(x)

    def step():
        gathering = dist.all_gather_into_tensor(gathered.view(-1), shard.view(-1), async_op=True)
        torch.mm(x, w, out=y)
        gathering.wait()
        return y, gathered

    return step
