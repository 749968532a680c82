"""Control: holds 512 MiB, and torch's allocator knows of them."""

import torch

BYTES = 512 << 20


def prepare(x, rows):
    y, held = torch.empty(rows, device=x.device), torch.empty(BYTES if x.is_cuda else 1, dtype=torch.uint8, device=x.device)
    return lambda: torch.sum(x, dim=1, out=y) if held.numel() else None
