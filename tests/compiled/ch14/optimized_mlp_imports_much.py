"""Control: eager PyTorch once more, in a process that imports the compiler and much else."""

import scipy.optimize
import scipy.stats
import torch._dynamo
import torch.distributed.tensor
from torch.nn.functional import gelu


def prepare(x, w1, w2):
    assert all((scipy.optimize, scipy.stats, torch._dynamo, torch.distributed.tensor))
    return lambda: gelu(x @ w1) @ w2
