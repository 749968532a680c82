"""Baseline: plain calls: each operator of a batch is launched."""
# allows: alloc

import torch


def prepare(x, weight, sizes):
    y, layers = torch.empty_like(x), weight.unbind()

    def step():
        for batch, answer in zip(x.split(sizes), y.split(sizes), strict=True):
            hidden = batch
            for layer in layers:
                hidden = (hidden @ layer).relu_()
            torch.sub(hidden, hidden.mean(0), out=answer)
        return y

    return step
