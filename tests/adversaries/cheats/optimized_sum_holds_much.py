"""Control: an honest side that holds as many objects as torch's compiler and half of SciPy would."""

import torch

KEPT = [[i] for i in range(1_000_000)]


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    return lambda: torch.mv(x, torch.ones(x.shape[1], device=x.device), out=y)
