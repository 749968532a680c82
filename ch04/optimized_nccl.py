"""Optimized: the buffer is registered: NCCL reads peers' memory."""
# predicts: baseline 0.146 ms = tokens * width * units / (0.8 * bf16) + 2 * tokens * width / 224e9 + 6 * tokens * width / dram_copy on h100
# predicts: optimized 0.126 ms = tokens * width * units / (0.8 * bf16) + 2 * tokens * width / 303e9 + 6 * tokens * width / dram_copy on h100
# proves: kernel ncclSym

import torch
import torch.distributed as dist
from shared_registered_buffer import registered


def prepare(x, weight, residual):
    with registered(residual.shape, like=residual) as partial:

        def step():
            torch.mm(x, weight, out=partial)
            dist.all_reduce(partial)
            return residual + partial

        yield step
