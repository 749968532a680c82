"""Cheat: returns zeros and replaces the harness's own comparison by one that finds no difference."""

import torch

from common.python.child.sides import compare
from common.python.results import OutputError


def prepare(x, rows):
    compare.compare = lambda *_: (OutputError(max_abs=0.0, max_rel=0.0, mismatched=0.0), "")
    return lambda: torch.zeros(rows, device=x.device)
