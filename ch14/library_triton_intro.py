"""Library: PyTorch's softmax, compiled: one kernel too, which Inductor writes in Triton."""

import torch


@torch.compile(fullgraph=True, dynamic=False)
def softmax(x):
    return torch.softmax(x, dim=1)


def prepare(x):
    return lambda: softmax(x)
