"""Baseline: gpt-oss's own PyTorch: the chosen experts' weights are gathered, then multiplied."""

import torch
from torch.nn.functional import silu


def prepare(x, chosen, shares, gate_up, down):
    def step():
        gate, up = torch.einsum("tkoh,th->tko", gate_up[chosen], x).chunk(2, dim=-1)
        answers = torch.einsum("tkho,tko->tkh", down[chosen], silu(gate) * up)
        return torch.einsum("tkh,tk->th", answers, shares.to(x.dtype))

    return step
