"""A linear layer and its GELU, c = gelu(a b^T), bf16 with sums in fp32: what is done to a tile after its product takes time of its own.

Expected 1.25x, and 1.046x at width 384 on an H200 (2026-11-22); of width 192 nothing was expected, and it gave 1.115x. Both sides take
longer than was counted: an SM has 24 tiles, and at 1.75 GHz one takes the baseline 10 080 cycles, not 6772, and the optimized side 9640,
not 5400. What would explain most of it: a scheduler was taken to issue an instruction in every cycle, but it drains with one warp or two,
whose instructions wait for each other. If a warp issues one in 3.8 cycles, its 1850 of half a tile take 7000, beside another warp or alone.
Then the optimized side, of which a warp drains a whole tile while the other multiplies or drains too, takes half of 3072 + 14 000 cycles a
tile, 8540, and the pair gives 1.18x at width 384 and, with 1536 cycles of products, 1.10x at 192. What else there is at width 384 is open.
A profile tells: smsp__inst_issued.sum over sm__cycles_active, how often they issue; stalls of kind wait, that instructions wait for each
other; lts__throughput, whether the loads that were taken for the limit are near it.
"""
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
