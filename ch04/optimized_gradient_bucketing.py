"""Optimized: one all-reduce of a flat bucket of all gradients."""

# predicts: baseline 7.68 ms = tensors * 30e-6 on h100  (a guess of what a small all-reduce costs: two GPUs, NCCL, from Python)
# predicts: optimized 0.138 ms = 4 * tensors * elements / 200e9 + 54e-6 on h100  (guesses: 200 GB/s; copy, start and wait 54 us)
# proves: launches in nccl < 0.1 x baseline
import torch
import torch.distributed as dist


def prepare(grads, tensors, elements):
    reduced = torch.empty(tensors, elements, dtype=grads[0].dtype, device=grads[0].device)
    flat = reduced.view(-1)

    def step():
        torch.cat(grads, out=flat)
        dist.all_reduce(flat)
        return reduced

    return step
