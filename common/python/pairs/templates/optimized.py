"""Optimized: one reduction reads every element once, in the order in which it lies in memory."""
# predicts: optimized = 0.5 x baseline  (an estimate from bytes or operations, written before anything is measured)

import torch


def prepare(x):  # inputs and entries of the shape, by name; not timed
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)

    def step():  # timed; x has new values in every call
        return torch.sum(x, dim=1, out=y)

    return step
