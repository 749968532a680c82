"""Compress what is above a threshold, each value by a gain of its own: y = x up to there, threshold + gain * (x - threshold) above.

Predicted: the baseline by two trips to DRAM, one after the other, the optimized side by DRAM's rate.

Measured: RESULTS.md. The baseline is near its prediction, the optimized side slower.

Why: a thread has a float of two arrays in flight, 16 KB per SM, as in the baseline of hbm_vectorized, which moves as much per second.
DRAM is 71 % busy (gpu__dram_throughput, H200), and 91 % in hbm_vectorized where a lane asks for 16 bytes.
"""

import torch

from common import Spec, Workload

THRESHOLD = 43 / 64  # a quarter of normally distributed values lie above: nearly every warp, and nine sectors in ten, have one
SECTORS = 1 - 0.75**8

WORKLOAD = Workload(
    inputs=lambda rand, n, threshold: {"x": rand.normal(n), "gain": rand.uniform(n)},
    outputs=lambda n, threshold: {"y": Spec((n,), torch.float32)},
    reference=lambda x, gain, threshold: torch.where(x > threshold, threshold + gain * (x - threshold), x),
    time_at={"n": 1 << 26, "threshold": THRESHOLD},  # 256 MiB an array: more than four times an L2 of 60 MB
    check_at=(
        {"n": 1, "threshold": THRESHOLD},
        {"n": 255, "threshold": THRESHOLD},
        {"n": 257, "threshold": THRESHOLD},
        {"n": 100_003, "threshold": THRESHOLD},
    ),
    work=lambda n, threshold: {"dram_read": 4 * n * (1 + SECTORS), "dram_write": 4 * n},
    rtol=2**-23,  # two roundings, of x - threshold and of a sum of positive terms
    atol=0.0,
)
