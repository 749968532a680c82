"""A linear layer and its GELU, c = gelu(a b^T), bf16 with sums in fp32: what is done to a tile after its product takes time of its own.

Predicted: cycles per tile at width 384. Of width 192 nothing was predicted.

Measured: RESULTS.md. The ratio is within the band, but both sides take far more cycles than predicted.

Why: with GELU inlined in both sides a tile took the baseline 10 080 cycles, not 6772, and the optimized side 9640, not 5400 (H200;
an SM makes 24 tiles). No unit was near its limit. Baseline, then optimized side: schedulers issued in 49 % and 45 % of cycles
(sm__issue_active), the ALU pipe was busy in 41 % and 43 %, the tensor cores in 32 % and 34 %, the L2 in 38 % and 38 % (lts__throughput).
Issuing is the busiest, and the ceiling does not count it: work() has the products alone. So warps wait: a draining warp issues one
instruction per 3.8 cycles, though its results depend on each other for 1.4 cycles at most.
Inlined, GELU is 27 KB of code in the baseline and 51 KB in the optimized side, without a loop, and a warp runs through it once per tile.
The optimized side's warps spent 13 % of their time waiting for instructions (no_instruction), the baseline's 2 %.
In the accepted row GELU is called, and either side waits so for about 2 %.

As a function that is called for eight sums, GELU costs 4 % more instructions, and the code of a tile is 19 KB. That helped the optimized
side and slowed the baseline by 4.4 %, which is limited by issuing. So each side has the form that is faster in it.
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
