"""Optimized: losses stay on the GPU until the loop ends: no waiting."""
# predicts: baseline 2.56 ms = batches * 80e-6  (60 us of kernels, then 20 us idle after .item(): the host wakes, then launches)
# predicts: optimized 1.92 ms = batches * 60e-6  (kernels alone)
# proves: calls cudaStreamSynchronize == 0

import torch
from torch.nn.functional import cross_entropy


def prepare(x, labels, weight):
    def step():
        losses = []
        for batch, label in zip(x, labels, strict=True):
            losses.append(cross_entropy(batch @ weight, label))
        return torch.stack(losses)

    return step
