"""A linear layer and its GELU, c = gelu(a b^T), bf16 with sums in fp32: what is done to a tile after its product takes time of its own.

Expected 1.25x, and 1.077x at width 384 on an H200 (2026-11-23); of width 192 nothing was expected, and it gave 1.113x. Both sides take
longer than was counted. At first, with GELU inlined in both, a tile, of which an SM has 24, took the baseline 10 080 cycles at 1.75 GHz,
not 6772, and the optimized side 9640, not 5400. Counters of that say that nothing was near its limit (the baseline's first): schedulers
issued in 49 and 45 % of cycles (sm__issue_active), the pipe of selections and comparisons was busy in 41 and 43, tensor cores in 32 and
34, lts__throughput was 37 and 38.

So warps wait: it is as if one issued an instruction in 3.8 cycles as it drains. Not for each other's results, for which ptxas has them
wait 1.3 and 1.4 cycles. But inlined, GELU is 27 and 51 KB of code without a loop, which a warp runs through once a tile, and of the
optimized side's warps' time 13 % passed waiting for instructions (no_instruction; 2 % of the baseline's): 1.046x and 1.115x at the two
widths. As a function of eight sums that is called it is 4 % more to issue, and a tile's code is 19 KB. In both sides that gave 1.160x and
1.201x, where 1.15x and 1.2x were expected, but the baseline took 4.4 % longer: it is the issuing that it waits for. So each side has the
form that is faster in it.

Of that 1.11x and 1.15x were expected, from those times. It gave the ratios above, on another H200: the optimized side took what was
expected, 125 and 98.6 us, but the baseline 2.8 % less, whose GELU ptxas orders by eight sums now. The optimized side's warps wait 56 %
less for their wgmma than the baseline's.
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
