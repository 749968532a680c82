"""Baseline: the whole batch is copied to the device, then scored, then its scores are copied back, all in one stream."""

import torch


def prepare(x, weights, head):
    batch = torch.empty(x.shape, dtype=x.dtype, device=head.device)
    y = torch.empty(len(x), head.shape[1], dtype=x.dtype, pin_memory=head.is_cuda)

    def step():
        batch.copy_(x, non_blocking=True)
        h = batch
        for w in weights:
            h = torch.relu_(h @ w)
        y.copy_(h @ head, non_blocking=True)
        return y

    return step
