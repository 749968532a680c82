"""Optimized: compiled autograd: hooks and sums fuse into one kernel."""
# predicts: baseline 31.5 ms = 4 * width**2 * layers * (5 * batches + 3 * (batches - 1) + 2) / dram_copy  (passes over a weight's size)
# predicts: optimized 24.5 ms = 4 * width**2 * layers * (3 * batches + 3 * (batches - 1) + 4) / dram_copy  (clamped while added)
# proves: kernels in elementwise_kernel < 0.5 x baseline

import torch
from shared_hooked import hooked, loss_of
from torch._dynamo import compiled_autograd


def prepare(x, weights):
    leaves = hooked(weights)
    loss = torch.compile(loss_of, fullgraph=True, dynamic=False)
    whole_graph = torch.compile(dynamic=False)  # made once: `config.compiled_autograd` makes another in each backward(), in milliseconds

    def step():
        for leaf in leaves:
            leaf.grad = None
        for batch in x:
            value = loss(batch, leaves)
            with compiled_autograd._enable(whole_graph):
                value.backward()
        return torch.stack([leaf.grad for leaf in leaves])

    return step
