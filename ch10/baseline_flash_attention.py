"""Baseline: one kernel per operation: scores go through DRAM."""

import torch


def prepare(q, k, v):
    scale = q.shape[-1] ** -0.5
    queries, keys, values = (tensor.flatten(0, 1) for tensor in (q, k, v))
    scores = torch.empty(len(queries), q.shape[2], k.shape[2], dtype=q.dtype, device=q.device)

    def step():
        torch.baddbmm(scores, queries, keys.mT, beta=0, alpha=scale, out=scores)  # writes seq^2
        probabilities = torch.softmax(scores, dim=-1)  # reads and writes seq^2
        return torch.bmm(probabilities, values).view_as(q)  # reads seq^2

    return step
