"""Baseline: one scale per tensor, by its largest value; an expert's matrix is a tensor of its own."""

import torch
from shared_e4m3_rounding import launched, round_by_one
from shared_expert_products import experts


def rounded(x):
    scale = torch.linalg.vector_norm(x, torch.inf, dtype=torch.float32).clamp(min=1e-30) / 448
    return launched(round_by_one, x.contiguous(), scale)


def prepare(x, gate_up, down, ends):
    gate_up, down = (torch.stack([rounded(matrix) for matrix in w]) for w in (gate_up, down))
    return lambda: experts(x, gate_up, down, ends, rounded)
