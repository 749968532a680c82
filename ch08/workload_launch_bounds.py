"""Fourier transforms of many signals of 4096 complex points: y[r, j] = sum over k of x[r, k] exp(-2 pi i j k / 4096), in float32.

Predicted: a guess. A row takes an SM about 4000 cycles of instructions, and 65 536 bytes / (dram_copy / sm_count), also about 4000 cycles.
How much of the two overlaps with two blocks per SM or with four, no equation says.

Measured: RESULTS.md.

Hypothesis why the optimized side stays below its ceiling: a block does one after the other, between barriers, and four overlap in part.
sm__throughput is 77 % and gpu__dram_throughput 64 % (H200): neither is full. cuFFT's sm__throughput is 50 %, in less time and at 40 warps.
"""

import torch

from common import Spec, Workload

POINTS = 4096


def reference(x):
    return torch.view_as_real(torch.fft.fft(torch.view_as_complex(x), dim=1))


WORKLOAD = Workload(
    inputs=lambda rand, rows: {"x": rand.normal(rows, POINTS, 2, std=POINTS**-0.5)},  # transforms of unit scale
    outputs=lambda rows: {"y": Spec((rows, POINTS, 2), torch.float32)},
    reference=reference,
    time_at={"rows": 16_384},  # 512 MiB each way, and 31 rounds of 4 blocks for each of 132 SMs
    check_at=({"rows": 1}, {"rows": 3}),
    work=lambda rows: {"dram_read": 8 * rows * POINTS, "dram_write": 8 * rows * POINTS},
    # The sides, emulated, are off by 1.8e-6 in the worst of a million points; times 2.
    rtol=0.0,
    atol=4e-6,
)
