"""Control: an honest side that holds its input and its answer."""

import torch


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    return lambda: torch.mv(x, torch.ones(x.shape[1], device=x.device), out=y)
