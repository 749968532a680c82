"""Control: an honest side, which returns the same buffer from every call."""

import torch


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    return lambda: torch.mv(x, torch.ones(x.shape[1], device=x.device), out=y)
