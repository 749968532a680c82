"""Baseline: one thread reads the file and adds."""

import numpy as np
import torch


def prepare(file, record):
    return lambda: torch.from_numpy(np.fromfile(file, dtype=np.uint8)).view(-1, record).sum(dim=1)
