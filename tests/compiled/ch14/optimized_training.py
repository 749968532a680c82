"""The same loss compiled as one graph, and with it its backward."""

import torch
from torch.nn.functional import cross_entropy, gelu


@torch.compile(fullgraph=True)
def loss(x, labels, w1, w2):
    return cross_entropy(gelu(x @ w1) @ w2, labels)


def prepare(x, labels, w1, w2):
    w1, w2 = w1.detach().requires_grad_(), w2.detach().requires_grad_()
    return lambda: torch.autograd.grad(loss(x, labels, w1, w2), (w1, w2))
