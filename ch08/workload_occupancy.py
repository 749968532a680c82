"""Decode a tensor from its codes: y[i] = table[codes[i]], with a table of 24576 entries.

Expected 4x, and 2.82x on an H200, 2.74x on another: a trip for codes was taken to be 650 ns on either side. It is 630 with 64 warps an SM,
but 445 or 430 with 16, since memory that is asked for a fifth of what it can deliver answers sooner (Little's law: bytes in flight over
bytes a ns).

What stops the optimized side at 58 % of its ceiling: 4 KB in flight an SM, of 10. No place for a warp is empty (sm__warps_active, 96 %),
and none asks for more than 64 bytes at a time, so that memory is 52 % busy (gpu__dram_throughput), the L2 63 (lts__throughput).
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
