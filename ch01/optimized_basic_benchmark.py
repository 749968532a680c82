"""Optimized: losses stay on the GPU until the loop is done, so the host runs ahead and the GPU never waits for it."""
# expects: 1.3x, a batch keeps the GPU busy for 60 us; after every .item() it idles for 20 us: the host wakes, then launches

import torch
from torch.nn.functional import cross_entropy


def prepare(x, labels, weight):
    def step():
        losses = []
        for batch, label in zip(x, labels, strict=True):
            losses.append(cross_entropy(batch @ weight, label))
        return torch.stack(losses)

    return step
