"""A signal of interleaved channels, each with a filter of its own: y[i] = f(x[i]) for even i, g(x[i]) for odd i.

Predicted: 284 instructions per warp, two filters of 128 and 28 others, become 156.

Measured: RESULTS.md. The gain is smaller than predicted.

Why: instructions are as counted, and 17.2 lanes of 32 are at work in the baseline, 32 in the optimized side
(smsp__thread_inst_executed_per_inst_executed, H200). But schedulers are less busy: sm__throughput falls from 91 % to 79 %.
What they wait for is not known.
"""

import torch

from common import Spec, Workload

DECAY = 63 / 64
ROUNDS = 128  # of each filter, an FMA each, so that arithmetic sets the pace of both sides; an eighth of x is left in y


def reference(x):
    even, odd = x[::2], x[1::2]
    for _ in range(ROUNDS):
        even = DECAY * even + (1 - DECAY)
        odd = -DECAY * (odd + 0.5)
    y = torch.empty_like(x)
    y[::2], y[1::2] = even, odd
    return y


WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.uniform(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=reference,
    time_at={"n": 1 << 26},
    check_at=({"n": 1}, {"n": 2}, {"n": 255}, {"n": 513}, {"n": 100_001}),
    # The rounds of a filter could be folded into one FMA, so that they are no bound: what any implementation has to do is move x and y.
    work=lambda n: {"fp32_fma": 2 * n, "dram_read": 4 * n, "dram_write": 4 * n},
    # 128 rounds in fp32 are off by at most 8e-7 (1 + |y|), over 4 M values on a CPU; times 2.5.
    rtol=2e-6,
    atol=2e-6,
)
