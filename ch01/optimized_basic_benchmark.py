"""Optimized: losses stay on the GPU until the loop is done, so the host runs ahead and the GPU never waits for it."""
# expects: 1.6x, a batch is 30 us of GPU and as much of launches: overlapped 31 us, with a sync 41 us and 10 us for the copy back

import torch
from torch.nn.functional import cross_entropy


def prepare(x, labels, weight):
    def step():
        losses = []
        for batch, label in zip(x, labels, strict=True):
            losses.append(cross_entropy(batch @ weight, label))
        return torch.stack(losses)

    return step
