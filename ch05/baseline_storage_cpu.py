"""Baseline: a block is read, then copied to the device, then the next is read: the disk rests during a copy, and the link during a read."""

import os

import torch

BLOCK = 4 << 20  # bytes


def prepare(file, order, records, record_bytes):
    stored = torch.empty(records * record_bytes, dtype=torch.uint8, device=order.device)
    epoch = torch.empty(records, record_bytes, dtype=torch.uint8, device=order.device)
    staging = torch.empty(BLOCK, dtype=torch.uint8)
    blocks = [(i * BLOCK, block) for i, block in enumerate(stored.split(BLOCK))]

    def step():
        with file.open("rb", buffering=0) as stream:
            for start, block in blocks:
                filled = staging[: len(block)]
                os.preadv(stream.fileno(), [filled.numpy()], start)
                block.copy_(filled)
        return torch.index_select(stored.view(records, record_bytes), 0, order, out=epoch)

    return step
