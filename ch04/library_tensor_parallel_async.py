"""Library: PyTorch's async tensor parallelism: copy engines fetch peers' tokens through symmetric memory beside the products."""

import torch
import torch.distributed as dist
from torch.distributed import _symmetric_memory  # noqa: F401  (defines the operators)


def prepare(x, weight, ranks):
    group = dist.group.WORLD.group_name
    gathered = x.new_empty(ranks * x.shape[0], x.shape[1])

    def step():
        if not x.is_cuda:  # symmetric memory is of GPUs
            dist.all_gather_into_tensor(gathered, x)
            return gathered @ weight.T
        _, (y,) = torch.ops.symm_mem.fused_all_gather_matmul(x, [weight.T], gather_dim=0, group_name=group, return_A=False)
        return y

    return step
