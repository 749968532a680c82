"""Add two vectors: c[i] = a[i] + b[i].

Expected 24000x, and 10524x on an H200 (2026-11-24). Alone, a thread took 61.2 ms, not 97: 467 ns for 8 elements, and 325 where a and b lay
in the L2 (nsys, 42.2 ms). 600 ns are what loaded memory takes; this one is idle, and may bring the next 8 elements along, as it gives 64
bytes at a time: that is open, as the L2's hits were not counted, and dram__bytes.sum, 9.7 MB, is a, b and a little of c either way. All
threads took 5.8 us, not 4, 49 % of the ceiling: they are one wave (launch__waves_per_multiprocessor is 1), c may be a, so each waits for 4
elements in turn, and memory is 32 % busy meanwhile (gpu__dram_throughput), the L2 50 (lts__throughput).
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"a": rand.normal(n), "b": rand.normal(n)},
    outputs=lambda n: {"c": Spec((n,), torch.float32)},
    reference=lambda a, b: a + b,
    time_at={"n": 1 << 20},
    check_at=({"n": 1}, {"n": 255}, {"n": 300_007}),  # the last: more than the optimized side has threads
    work=lambda n: {"dram_read": 8 * n, "dram_write": 4 * n},
    rtol=2**-24,  # one rounding of a correctly rounded sum
    atol=0.0,
)
