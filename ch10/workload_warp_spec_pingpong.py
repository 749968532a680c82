"""A linear layer and its GELU, c = gelu(a b^T), bf16 with sums in fp32: what is done to a tile after its product takes time of its own.

Expected 1.25x, and 1.046x at width 384 on an H200 (2026-11-22); of width 192 nothing was expected, and it gave 1.115x. Both sides take
longer than was counted: an SM has 24 tiles, and at 1.75 GHz one takes the baseline 10 080 cycles, not 6772, and the optimized side 9640,
not 5400. Counters say that nothing is near its limit (2026-11-23, the baseline's first): schedulers issue in 49 and 45 % of cycles
(sm__issue_active), the pipe of selections and comparisons is busy in 41 and 43, tensor cores in 32 and 34, lts__throughput is 37 and 38.

So warps wait, and it is as if one issued an instruction in 3.8 cycles when it drains, beside another warp or alone: then half a tile's 1850
take 7000, the optimized side, of which a warp drains a whole tile while the other multiplies or drains too, half of 3072 + 14 000 cycles a
tile, 8540, and the pair gives 1.18x at width 384 and, with 1536 cycles of products, 1.10x at 192. It was thought that instructions wait for
each other. But what ptxas has them wait is 1.3 and 1.4 cycles each, in the control codes of 1728 and 3282 instructions from the first erff
to the last. These are 27 and 51 KB of code without a loop, which a warp runs through once a tile, and for instructions (no_instruction)
warps wait 2 % of their time in the baseline and 13 % in the optimized side (2026-11-23). A function of eight sums that is called, and not
inlined, would need 3.4 KB: what that gains is not measured yet.
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
