"""Baseline: a loop over experts: find an expert's tokens, run its network on them, add what it answers."""
# allows: sync

import torch
import torch.nn.functional as F


def prepare(x, chosen, gates, up, down):
    def step():
        y = torch.zeros_like(x)
        for expert in range(len(up)):
            token, place = torch.where(chosen == expert)
            opened, values = F.linear(x[token], up[expert]).chunk(2, dim=1)
            answers = F.linear(F.silu(opened) * values, down[expert])
            y.index_add_(0, token, answers * gates[token, place, None])
        return y

    return step
