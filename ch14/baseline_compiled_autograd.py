"""Baseline: a compiled forward pass; autograd calls each hook and adds each gradient up as an eager kernel of its own."""

import torch
from shared_hooked import hooked, loss_of


def prepare(x, weights):
    leaves = hooked(weights)
    loss = torch.compile(loss_of, fullgraph=True, dynamic=False)  # and with it what AOTAutograd derives as its backward pass

    def step():
        for leaf in leaves:
            leaf.grad = None
        for batch in x:
            loss(batch, leaves).backward()
        return torch.stack([leaf.grad for leaf in leaves])

    return step
