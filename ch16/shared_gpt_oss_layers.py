"""The layers of gpt-oss-120b at their published sizes, or at small ones for a CPU, with random weights."""

import dataclasses
import itertools

import torch

from common.block_formats import mxfp4_restored
from common.models.config import Experts, gpt_oss_120b
from common.models.decoder import shapes


def config_of(layers, hidden, heads, experts):
    """The published layer at the published sizes, 2880, 64 and 128, or a smaller one for a CPU."""
    sizes = {"hidden": hidden, "intermediate": hidden, "heads": heads, "kv_heads": heads // 8, "experts": Experts(experts, top=4)}
    return dataclasses.replace(gpt_oss_120b(layers), **sizes)


def weights_of(rand, config):
    """A dict a layer, without its experts."""
    named = {name.removeprefix("layers.0."): shape for name, shape in shapes(config).items() if name.startswith("layers.0.")}

    def weight(name, shape):
        std = shape[1] ** -0.5 if len(shape) > 1 else 0.5
        return rand.normal(*shape, dtype=config.dtype, mean=float(name.endswith("norm")), std=std)

    return [{name: weight(name, shape) for name, shape in named.items() if "experts" not in name} for _ in range(config.layers)]


def clamped_swiglu(gate_up):
    """gpt-oss's activation, of [..., 2 * intermediate] whose first half is the gate."""
    gate, up = gate_up.chunk(2, dim=-1)
    gate, up = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
    return gate * torch.sigmoid(1.702 * gate) * (up + 1)


def one_by_one(packed, layer, h, chosen, shares):
    """The experts' answer in plain arithmetic: a matrix is unpacked for each token and expert."""
    out = torch.zeros_like(h)
    for token, slot in itertools.product(range(len(h)), range(chosen.shape[1])):
        expert, part = chosen[token, slot], h[token]
        for name, (blocks, scales, biases) in packed[layer].items():
            part = mxfp4_restored(blocks[expert], scales[expert], h.dtype) @ part + biases[expert]
            part = clamped_swiglu(part) if name == "gate_up" else part
        out[token] += shares[token, slot] * part
    return out
