"""Baseline: all-reduces after the whole backward pass, one a gradient: the links idle first, then the tensor cores."""

import torch.distributed as dist
from shared_mlp_stack import stack


def prepare(x, weights, ranks, loss_scale):
    model = stack(weights)
    parameters = list(model.parameters())

    def step():
        model.zero_grad(set_to_none=True)
        loss = loss_scale * model(x).float().square().mean()
        (loss / ranks).backward()  # the sum over ranks is the mean then
        gradients = [p.grad for p in parameters]
        for gradient in gradients:
            dist.all_reduce(gradient)
        return loss.detach(), *gradients

    return step
