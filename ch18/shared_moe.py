"""The experts of a gpt-oss layer one after another, and what a grouped product needs: tokens sorted by expert."""

import dataclasses

import torch

from common.models.config import Experts, gpt_oss_20b
from common.models.layers import run_experts


def config_of(experts, top, hidden):
    """A layer of gpt-oss-20b with these sizes; 32, 4 and 2880 are the published ones."""
    return dataclasses.replace(gpt_oss_20b(1), hidden=hidden, intermediate=hidden, experts=Experts(experts, top))


def loop_over_experts(x, chosen, shares, gate_up, gate_up_bias, down, down_bias):
    """The layer's answer, [tokens, hidden]: one expert after another, on the tokens that chose it."""
    weights = {"gate_up": gate_up, "gate_up_bias": gate_up_bias, "down": down, "down_bias": down_bias}
    named = {f"layers.0.experts.{name}": weight for name, weight in weights.items()}
    return run_experts(named, config_of(len(gate_up), chosen.shape[1], x.shape[1]), 0, x, chosen, shares)


def by_expert(chosen, numbers):
    """Slots, [tokens * top], in the order of their experts, those experts, and where each expert's slots end. Nothing waits for the device.

    A slot is a token's place in the flattened `chosen`, [tokens, top]; `numbers` are those of all experts.
    """
    expert, order = chosen.flatten().sort(stable=True)
    return order, expert, torch.searchsorted(expert, numbers, right=True, out_int32=True)


def stages_of(step_bytes, device):
    """How many steps' tiles, of `step_bytes` in all, a block's shared memory holds at once: at most 4, and 4 without a GPU."""
    if device.type != "cuda":
        return 4
    return min(4, torch.cuda.get_device_properties(device).shared_memory_per_block_optin // step_bytes)
