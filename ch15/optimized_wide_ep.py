"""Optimized: wide: all ranks share out the experts."""
# predicts: baseline 1.90 ms = 6 * hidden * ffn * experts / (0.75 * dram_read) + 60e-6  (two GPUs: each reads all experts, sends nothing)
# predicts: optimized 1.17 ms = 6 * hidden * ffn * experts / 2 / (0.75 * dram_read) + 0.25e-3  (half of them; counts and two transfers)
# has: kernel SendRecv
# allows: sync

from shared_experts import expert_layer
from torch.distributed import group


def prepare(x, chosen, gates, up, down):
    return lambda: expert_layer(x, chosen, gates, up, down, group.WORLD)
