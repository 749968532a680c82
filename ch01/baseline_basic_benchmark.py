"""Baseline: each loss is read by .item(), so the GPU waits for the host."""
# allows: sync

import torch
from torch.nn.functional import cross_entropy


def prepare(x, labels, weight):
    def step():
        losses = []
        for batch, label in zip(x, labels, strict=True):
            losses.append(cross_entropy(batch @ weight, label).item())
        return torch.tensor(losses, device=x.device)

    return step
