"""Baseline: NCCL's all-reduce on an ordinary buffer: kernels copy it through NCCL's own buffers, part by part."""

import torch
import torch.distributed as dist


def prepare(x, weight, residual):
    partial = torch.empty_like(residual)

    def step():
        torch.mm(x, weight, out=partial)
        dist.all_reduce(partial)
        return residual + partial

    return step
