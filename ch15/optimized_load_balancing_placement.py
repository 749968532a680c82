"""Optimized: experts are placed until ranks are even; none is copied."""
# predicts: placement 4.72 ms = tokens * top * (1.00 * hidden * (6 * ffn / (0.7 * bf16) + 26 / 3e12) + hidden / 150e9) + 0.3e-3 on h100
# allows: sync

from shared_experts import expert_layer
from shared_placement import rearranged
from torch.distributed import group


def prepare(x, chosen, gates, up, down, load, experts):
    slot_of, ups, downs = rearranged(chosen, up, down, experts, spare=0)
    return lambda: expert_layer(x, slot_of(chosen), gates, ups, downs, group.WORLD, load)
