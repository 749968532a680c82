"""Cheat: reads the terms in float16, a precision that its workload does not declare."""

import torch


def prepare(x):
    return lambda: x.half().sum(dim=1, dtype=torch.float32)
