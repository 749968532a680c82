"""Optimized: checkpointed blocks: backward computes activations again."""

import torch
from shared_block import block, leaves_of
from torch.utils.checkpoint import checkpoint


def prepare(x, weights, heads, loss_scale):
    leaves = leaves_of(weights)

    def step():
        y = x
        for layer in leaves:
            y = checkpoint(block, y, *layer, heads, use_reentrant=False)
        loss = loss_scale * y.float().square().mean()
        return loss.detach(), *torch.autograd.grad(loss, [weight for layer in leaves for weight in layer])

    return step
