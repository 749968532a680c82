"""Baseline: weights are gathered and gradients reduced in BF16, as FSDP2 does for a BF16 model."""

import torch
import torch.distributed as dist


def prepare(shard, gradients):
    weights, reduced = torch.empty_like(gradients), torch.empty_like(shard)

    def step():
        dist.all_gather_into_tensor(weights.view(-1), shard)
        dist.reduce_scatter_tensor(reduced, gradients.view(-1))
        return weights, reduced

    return step
