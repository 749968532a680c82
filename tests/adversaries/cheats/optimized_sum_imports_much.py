"""Control: an honest side that imports torch's compiler, its distributed tensors and half of SciPy, as many sides have to."""

import scipy.optimize
import scipy.stats
import torch
import torch._dynamo
import torch.distributed.tensor

IMPORTED = scipy.optimize, scipy.stats, torch._dynamo, torch.distributed.tensor


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    return lambda: torch.mv(x, torch.ones(x.shape[1], device=x.device), out=y)
