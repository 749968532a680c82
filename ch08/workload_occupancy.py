"""Decode a tensor from its codes: y[i] = table[codes[i]], with a table of 24576 entries.

Predicted: bytes in flight over 650 ns set both times: 1 KB per SM with 16 warps, 4 KB with 64.
DRAM is full with 7.1 KB in flight per SM: a third of the traffic is reads, dram_copy / 3 / sm_count * 650 ns.

Measured: RESULTS.md. The baseline is faster than predicted, the optimized side as predicted.

Why: hypothesis: DRAM that is asked for a fifth of what it can deliver answers sooner than after 650 ns. No counter of latency was read.
The optimized side stays below its ceiling with 4 KB in flight of 7.1: all warp slots are taken (sm__warps_active, 96 %), and no warp
asks for more than 64 bytes at a time. DRAM is 52 % busy (gpu__dram_throughput, H200), the L2 63 % (lts__throughput).
"""

import torch

from common import Spec, Workload

SIZE = 24576


def inputs(rand, n):
    return {"table": rand.normal(SIZE), "codes": rand.integers(n, low=0, high=SIZE, dtype=torch.int16)}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda table, codes: table[codes.long()],
    time_at={"n": 1 << 27},  # 256 MiB of codes: more than four times an L2 of 60 MB
    check_at=({"n": 1}, {"n": 255}, {"n": 2049}, {"n": 3001}),  # a block of either side; several; the last one with threads to spare
    work=lambda n: {"dram_read": 2 * n + 4 * SIZE, "dram_write": 4 * n},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
