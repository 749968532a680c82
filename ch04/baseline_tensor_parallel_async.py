"""Baseline: gather all tokens, then one product: tensor cores wait for the last byte."""

import torch
import torch.distributed as dist


def prepare(x, weight, ranks):
    gathered = x.new_empty(ranks * x.shape[0], x.shape[1])

    def step():
        dist.all_gather_into_tensor(gathered, x)
        return torch.mm(gathered, weight.T)

    return step
