"""Baseline: a loop over experts, once the host knows how many rows each has: gather rows, two products, add what they answer."""
# allows: sync

from functools import partial

from shared_moe import loop_over_experts


def prepare(x, chosen, shares, gate_up, gate_up_bias, down, down_bias):
    return partial(loop_over_experts, x, chosen, shares, gate_up, gate_up_bias, down, down_bias)
