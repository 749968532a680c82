"""A control: right, and keeps memory for its answer by its input's shape."""

import torch


def prepare(x):
    buffers = {}

    def step():
        if x.shape not in buffers:
            buffers[x.shape] = torch.empty(len(x), device=x.device)
        return torch.sum(x, dim=1, out=buffers[x.shape])

    return step
