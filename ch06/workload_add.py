"""Add two vectors: c[i] = a[i] + b[i]."""

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
