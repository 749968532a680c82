"""Two functions, one after the other, on every element of a float32 vector: y = sqrt(sin(x)), for x in [0, pi).

Predicted: half the bytes, half the time. Measured: RESULTS.md; somewhat less.

Why: the baseline keeps DRAM 83 % busy, the optimized side 78 % (gpu__dram_throughput, H200). Hypothesis: a sine and a root stand between
a warp's load and its store, and the prediction let them hide without a gap. sm__throughput rises from 46 % to 71 %.
"""

import torch

from common import Spec, Workload

BELOW_PI = 3.1415925  # the float32 next to it is above pi, where the sine is negative

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.uniform(n, low=0.0, high=BELOW_PI)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x.sin().sqrt(),
    time_at={"n": 1 << 26},  # 256 MiB each way: more than four times an L2 of 60 MB
    check_at=({"n": 1}, {"n": 255}, {"n": 1025}, {"n": 100_003}),
    # A sine and a root count as one each, however many instructions they take: no ceiling of flops is near.
    work=lambda n: {"fp32_fma": 2 * n, "dram_read": 4 * n, "dram_write": 4 * n},
    # CUDA states sinf to 2 ulp, of which the root keeps half, and rounds once more: 1.79e-7. With the sinf of g++ it is 9.0e-8.
    rtol=1.8e-7,
    atol=0.0,
)
