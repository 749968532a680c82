"""A linear layer and its GELU, c = gelu(a b^T), bf16 with sums in fp32: what is done to a tile after its product takes time of its own."""
# needs: wgmma, tma

from dataclasses import replace

import torch
from shared_matmul import MATMUL

WORKLOAD = replace(
    MATMUL,
    reference=lambda a, b: torch.nn.functional.gelu(a @ b.T),
    # The first layer of an MLP, 4 times its width, as in two stages of a ConvNeXt: a tile has 3 or 6 steps, not the 16 of a large model.
    time_at={
        "width 384": {"m": 32768, "n": 1536, "k": 384},
        "width 192": {"m": 65536, "n": 768, "k": 192},
    },
)
