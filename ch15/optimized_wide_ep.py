"""Optimized: wide: all ranks share out the experts."""
# predicts: baseline 2.71 ms = 6 * hidden * ffn * experts / 2.4e12 + 60e-6 on h100  (two GPUs: each reads all experts, and sends nothing)
# predicts: optimized 1.58 ms = 6 * hidden * ffn * experts / 2 / 2.4e12 + 0.25e-3 on h100  (reads half of them; counts and two transfers)
# proves: counter dram__bytes_read.sum < 0.7 x baseline
# allows: sync

from shared_experts import expert_layer
from torch.distributed import group


def prepare(x, chosen, gates, up, down):
    return lambda: expert_layer(x, chosen, gates, up, down, group.WORLD)
