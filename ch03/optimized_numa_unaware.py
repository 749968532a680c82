"""Optimized: threads and pinned pages on the GPU's NUMA node."""
# predicts: baseline 11.7 ms = 4 * rows * cols / 40e9 + 4 * rows * cols / h2d + 8 * rows * cols / dram_copy (host copy: assumed)
# predicts: optimized 11.7 ms = 4 * rows * cols / 40e9 + 4 * rows * cols / h2d + 8 * rows * cols / dram_copy (one node: no change)

import torch
from shared_numa import bind, home_of
from shared_staging import staged


def prepare(batch, scale):
    if (node := home_of(scale.device)) is not None:
        torch.set_num_threads(min(torch.get_num_threads(), len(bind(node))))
    return staged(batch, scale)
