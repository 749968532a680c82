"""The experts of a layer, unpacked to bf16 when loaded."""

import torch
from torch.nn.functional import grouped_mm, linear

from common.block_formats import mxfp4_restored
from common.models.layers import activated


def unpacked(packed, dtype):
    """Weights and biases of `gate_up` and of `down`, a pair of pairs a layer; a weight is [experts, out, in]."""
    return [[(mxfp4_restored(*matrix[:2], dtype), matrix[2]) for matrix in (layer["gate_up"], layer["down"])] for layer in packed]


def looped(config, matrices):
    """Expert after expert, each on the tokens that chose it. The host reads who was chosen, and how many tokens each expert has."""

    def mixture(layer, h, chosen, shares):
        out = torch.zeros_like(h)
        (gate_up, gate_up_bias), (down, down_bias) = matrices[layer]
        for expert in chosen.unique().tolist():
            token, slot = torch.where(chosen == expert)
            inner = activated(config, linear(h[token], gate_up[expert], gate_up_bias[expert]))
            out.index_add_(0, token, linear(inner, down[expert], down_bias[expert]) * shares[token, slot, None])
        return out

    return mixture


def grouped(config, matrices):
    """Two grouped products over tokens sorted by expert. Where an expert's rows end is found and read on the device."""
    numbers = torch.arange(config.experts.count, device=matrices[0][0][0].device)

    def mixture(layer, h, chosen, shares):
        (gate_up, gate_up_bias), (down, down_bias) = matrices[layer]
        expert, order = chosen.flatten().sort()
        ends = torch.searchsorted(expert, numbers, right=True, out_int32=True)
        inner = activated(config, grouped_mm(h[order // chosen.shape[1]], gate_up.mT, offs=ends) + gate_up_bias[expert])
        answers = grouped_mm(inner, down.mT, offs=ends) + down_bias[expert]
        back = torch.empty_like(answers)
        back[order] = answers
        return torch.bmm(shares[:, None], back.view(*chosen.shape, -1)).squeeze(1)

    return mixture
