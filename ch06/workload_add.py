"""Add two vectors: c[i] = a[i] + b[i].

Predicted: one thread waits 600 ns for DRAM once in 8 elements, a sector, and 20 ns for the L1 for each other one.

Measured: RESULTS.md. The baseline is faster than predicted, and all threads together are slower.

Why: a hypothesis is that 600 ns is the latency of a loaded memory, and one thread loads nothing. No request brings the next sector along:
the loads miss 262 144 sectors in the L1 and as many in the L2, each once (both hit rates; expectations_h200.json).
The optimized side is one wave (launch__waves_per_multiprocessor is 1), and each thread waits for 4 elements one after the other.
DRAM is 32 % busy then (gpu__dram_throughput; H200), the L2 50 % (lts__throughput).
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"a": rand.normal(n), "b": rand.normal(n)},
    outputs=lambda n: {"c": Spec((n,), torch.float32)},
    reference=lambda a, b: a + b,
    time_at={"n": 1 << 20},
    check_at=({"n": 1}, {"n": 255}, {"n": 300_007}),  # the last: more than the optimized side has threads
    work=lambda n: {"dram_read": 8 * n},  # the L2 keeps what is written
    rtol=2**-24,  # one rounding of a correctly rounded sum
    atol=0.0,
)
