"""Optimized: copies of hot experts, spread until ranks are even."""
# predicts: baseline 5.98 ms = tokens * top * (1.34 * hidden * (6 * ffn / (0.7 * bf16) + 26 / 3e12) + hidden / 150e9) + 0.3e-3 on h100
# predicts: optimized 4.72 ms = tokens * top * (1.00 * hidden * (6 * ffn / (0.7 * bf16) + 26 / 3e12) + hidden / 150e9) + 0.3e-3 on h100
# allows: sync

from shared_experts import expert_layer
from shared_placement import rearranged
from torch.distributed import group


def prepare(x, chosen, gates, up, down, load, experts, spare):
    slot_of, ups, downs = rearranged(chosen, up, down, experts, spare)
    return lambda: expert_layer(x, slot_of(chosen), gates, ups, downs, group.WORLD, load)
