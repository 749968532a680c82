"""Baseline: DDP: each rank keeps all parameters and all gradients, and all-reduces average the gradients."""

import torch.distributed as dist
from shared_mlp_stack import HIDDEN, named, stack
from torch.nn.parallel import DistributedDataParallel


def gathered(shard, ranks):
    whole = shard.new_empty(ranks * shard.shape[0], shard.shape[1])
    dist.all_gather(list(whole.chunk(ranks)), shard)
    return whole


def prepare(x, weights, rank, ranks, width, layers, loss_scale):
    model = stack(layers, width, HIDDEN * width)
    model.load_state_dict({name: gathered(shard, ranks) for name, shard in named(weights).items()}, assign=True)
    replica = DistributedDataParallel(model, gradient_as_bucket_view=True)
    parameters = list(model.parameters())

    def step():
        replica.zero_grad(set_to_none=True)
        loss = loss_scale * replica(x).square().mean()
        loss.backward()
        return loss.detach(), *(p.grad.chunk(ranks)[rank].clone() for p in parameters)

    return step
