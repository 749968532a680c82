"""A stack of residual MLPs on several ranks, each with tokens of its own, in two layouts: tensor parallelism, and replicas."""

import torch
import torch.distributed as dist
import torch.nn.functional as F


def mlp(x, up, down):
    """relu(norm(x) up^T) down, for x [tokens, width], up and down [hidden, width]."""
    return torch.relu(F.rms_norm(x, x.shape[-1:]) @ up.T) @ down


def replicas(x, weights):
    """A rank computes its own tokens with all weights, and nothing travels."""
    for layer in weights:
        x = x + mlp(x, layer["up"], layer["down"])
    return x


def tensor_parallel(x, weights, rank, ranks):
    """A rank computes all ranks' tokens with its share of the hidden units. Per layer an all-gather and a reduce-scatter of sums."""
    everyone = x.new_empty(ranks * len(x), x.shape[1])
    for layer in weights:
        up, down = (layer[name].chunk(ranks)[rank] for name in ("up", "down"))  # views: no memory of their own
        dist.all_gather_into_tensor(everyone, x)
        mine = torch.empty_like(x)
        dist.reduce_scatter_tensor(mine, mlp(everyone, up, down))
        x = x + mine
    return x
