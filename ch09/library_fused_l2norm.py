"""Library: torch.compile of torch.nn.functional.normalize: Inductor makes one kernel of what are three in eager PyTorch."""

import torch
from torch.nn.functional import normalize


@torch.compile(fullgraph=True, dynamic=False)
def unit_rows(x, eps):
    return normalize(x, dim=1, eps=eps)


def prepare(x, eps):
    return lambda: unit_rows(x, eps)
