"""A signal of interleaved channels, each with a filter of its own: y[i] = f(x[i]) for even i, g(x[i]) for odd i.

f smooths and g limits. They cost about the same, 128 and 127 instructions in sm_90a, and share no form that a select could choose from.

Predicted: 280 instructions per warp, two filters and 25 others, become 155.5, the mean filter and 28 others. So issue slots, as full in
both sides, set the time. The unit of g's square roots does not: it takes 8 cycles for a warp's, so 144 of the baseline's 280 cycles.

Measured: RESULTS.md.
"""

import torch

from common import Spec, Workload

DECAY = 63 / 64
BIAS = 1 / 64
SMOOTHINGS, LIMITINGS = 128, 18  # so that arithmetic sets the pace; of a change of x, f leaves 0.13 in y and g at least 0.4


def reference(x):
    even, odd = x[::2], x[1::2]
    for _ in range(SMOOTHINGS):
        even = DECAY * even + (1 - DECAY)
    for _ in range(LIMITINGS):
        odd = odd - BIAS
        odd = odd / torch.sqrt(1 + odd * odd / 16)
    y = torch.empty_like(x)
    y[::2], y[1::2] = even, odd
    return y


WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.uniform(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=reference,
    time_at={"n": 1 << 26},
    check_at=({"n": 1}, {"n": 2}, {"n": 255}, {"n": 513}, {"n": 100_001}),
    # f could be folded into one FMA, and g be looked up, so their rounds are no bound. Any implementation has to move x and y.
    work=lambda n: {"fp32_fma": 2 * n, "dram_read": 4 * n, "dram_write": 4 * n},
    # In fp32, f is off by at most 8e-7 (1 + |y|), over 4 M values on a CPU. g is off by 5e-7, and with each rsqrtf off by the 2 ulp that
    # CUDA allows, by 2e-6 (1 + |y|); times 1.5.
    rtol=3e-6,
    atol=3e-6,
)
