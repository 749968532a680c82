"""Baseline: DDP: each rank keeps all experts and all their gradients, and all-reduces average the gradients."""

import torch.distributed as dist
from shared_expert_shards import experts_block
from shared_mlp_stack import named
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Experts(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights = nn.ParameterList(map(nn.Parameter, weights))

    def forward(self, x, orders):
        for order, up, down in zip(orders, self.weights[::2], self.weights[1::2], strict=True):
            x = experts_block(x, order, up, down)
        return x


def gathered(shard, ranks):
    whole = shard.new_empty(ranks * shard.shape[0], *shard.shape[1:])
    dist.all_gather(list(whole.chunk(ranks)), shard)
    return whole


def prepare(x, order, weights, rank, ranks, loss_scale):
    model = Experts([gathered(shard, ranks) for shard in named(weights).values()])
    replica = DistributedDataParallel(model, gradient_as_bucket_view=True)

    def step():
        replica.zero_grad(set_to_none=True)
        loss = loss_scale * replica(x, order).square().mean()
        loss.backward()
        return loss.detach(), *(p.grad.chunk(ranks)[rank].clone() for p in model.parameters())

    return step
