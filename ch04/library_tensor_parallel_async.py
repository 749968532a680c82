"""Library: PyTorch's async tensor parallelism: copy engines fetch peers' tokens through symmetric memory beside the products."""

import torch
import torch.distributed as dist


def prepare(x, weight, ranks):
    group = dist.group.WORLD.group_name
    parts = [torch.empty_like(x) for _ in range(ranks)]

    def step():
        if not x.is_cuda:  # symmetric memory is of GPUs
            dist.all_gather(parts, x)
            return torch.cat(parts) @ weight.T
        _, (y,) = torch.ops.symm_mem.fused_all_gather_matmul(x, [weight.T], gather_dim=0, group_name=group, return_A=False)
        return y

    return step
