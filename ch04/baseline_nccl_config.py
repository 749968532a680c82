"""Baseline: the default communicator, in which NCCL chooses how many SMs an all-reduce takes."""

import torch
import torch.distributed as dist


def prepare(gradient):
    reduced = torch.empty_like(gradient)

    def step():
        reduced.copy_(gradient)
        dist.all_reduce(reduced)
        return reduced

    return step
