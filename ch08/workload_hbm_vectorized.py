"""A step along a direction: y = x + factor * z, element by element, in float32: two reads for every write.

Predicted: the rates of a tuning run with 16 KB and with 64 KB in flight per SM. Measured: RESULTS.md; near the prediction.

Why: DRAM is 72 % busy in the baseline and 91 % in the optimized side (gpu__dram_throughput, H200).
A thread of ch07:vectorized_copy has one array to read, half as many bytes in flight, and gains more by a vector.
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n, factor: {"x": rand.normal(n), "z": rand.normal(n)},
    outputs=lambda n, factor: {"y": Spec((n,), torch.float32)},
    reference=lambda x, z, factor: x + factor * z,
    time_at={"n": 1 << 27, "factor": 0.75},  # 512 MiB an array: 9 times an L2 of 60 MB, so what is left in it at the end is little
    check_at=(
        {"n": 1, "factor": 0.75},
        {"n": 4096, "factor": 0.75},  # whole blocks of vectors
        {"n": 4103, "factor": -2.5},
        {"n": 100_003, "factor": 0.75},
    ),
    work=lambda n, factor: {"dram_read": 8 * n, "dram_write": 4 * n},
    rtol=2**-24,  # one rounding, of an FMA
    atol=0.0,
)
