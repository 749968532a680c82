"""Baseline: experts lie in the order of their numbers."""
# allows: sync

from shared_experts import expert_layer
from torch.distributed import group


def prepare(x, chosen, gates, up, down, load):
    return lambda: expert_layer(x, chosen, gates, up, down, group.WORLD, load)
