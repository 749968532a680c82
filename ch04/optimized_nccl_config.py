"""Optimized: the settings that measured fastest at this size."""
# guess: 1.03x, NCCL's own choice is near the best on one host; a preset is taken only where it measures faster

import torch
import torch.distributed as dist
from nccl_blackwell_config import fastest_for


def prepare(gradient):
    reduced = torch.zeros_like(gradient)
    group = fastest_for(reduced)

    def step():
        reduced.copy_(gradient)
        dist.all_reduce(reduced, group=group)
        return reduced

    return step
