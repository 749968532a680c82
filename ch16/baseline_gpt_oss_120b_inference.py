"""Baseline: experts unpacked to bf16 when loaded, and grouped products over tokens sorted by expert."""

import torch
from shared_gpt_oss import decoder
from shared_gpt_oss_layers import clamped_swiglu, config_of
from torch.nn.functional import grouped_mm

from common.block_formats import mxfp4_restored
from common.graph import captured


def prepare(x, weights, packed, chosen, keys, values, layers, hidden, heads, experts):
    unpacked = [[(mxfp4_restored(*matrix[:2], x.dtype).mT, matrix[2]) for matrix in (layer["gate_up"], layer["down"])] for layer in packed]
    numbers = torch.arange(experts, device=x.device)

    def mixture(layer, h, chosen, shares):
        expert, order = chosen.flatten().sort()
        ends = torch.searchsorted(expert, numbers, right=True, out_int32=True)  # of each expert's rows
        (gate_up, gate_up_bias), (down, down_bias) = unpacked[layer]
        inner = clamped_swiglu(grouped_mm(h[order // chosen.shape[1]], gate_up, offs=ends) + gate_up_bias[expert])
        answers = grouped_mm(inner, down, offs=ends) + down_bias[expert]
        back = torch.empty_like(answers)
        back[order] = answers
        return torch.bmm(shares[:, None], back.view(*chosen.shape, -1)).squeeze(1)

    replay = captured(decoder(config_of(layers, hidden, heads, experts), x, weights, chosen, keys, values, mixture))
    yield replay
    replay.close()
