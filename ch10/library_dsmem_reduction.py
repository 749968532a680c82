"""Library: torch.sum, one kernel in which the last block of a row to finish adds what the others have left in global memory."""

import torch


def prepare(x):
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    return lambda: torch.sum(x, 1, out=y)
