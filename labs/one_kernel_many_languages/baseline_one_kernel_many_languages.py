"""Baseline: PyTorch, one kernel per operator: norm, magnitude, largest, quotient, cast."""

import torch
from torch.nn.functional import rms_norm


def prepare(x, weight):
    def step():
        n = rms_norm(x, x.shape[-1:], weight, 1e-6)
        scale = n.abs().amax(-1).float() / 448
        return (n / scale[:, None]).to(torch.float8_e4m3fn), scale  # at most 448: nothing to clamp

    return step
