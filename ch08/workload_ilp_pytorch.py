"""A leaky integrator over time, for many channels: h[t] = decay * h[t - 1] + x[t], for steps in eights.

Predicted: 512 launches become 72. A launch takes the host 10.3 us in the baseline. In the optimized side it takes 11.0 us on average:
PyTorch's checks take longer for tensors that are not contiguous, for powers and for corrections. Measured: RESULTS.md.

Where these come from: in an earlier row a launch also made three views. Each side's time was so many launches of one cost, and PyTorch's
host code, timed on a CPU with and without views, times one factor. Two times give the cost and the factor; then the views are left out.

Both sides make their views once, in `prepare`, so the ratio is of launches. The host sets the pace, so times of a side scatter.
"""

import torch

from common import Spec, Workload


def inputs(rand, steps, channels):
    return {"x": rand.normal(steps, channels), "decay": rand.uniform(channels, low=0.9, high=0.99)}


def reference(x, decay):
    h = torch.zeros_like(x)
    last = torch.zeros_like(decay)
    for now, kept in zip(x, h, strict=True):
        last = decay * last + now
        kept.copy_(last)
    return h


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda steps, channels: {"h": Spec((steps, channels), torch.float32)},
    reference=reference,
    time_at={"steps": 512, "channels": 16_384},
    cpu_at={"steps": 512, "channels": 256},
    check_at=(
        {"steps": 8, "channels": 1},  # a step a segment
        {"steps": 24, "channels": 33},
        {"steps": 512, "channels": 100},
    ),
    work=lambda steps, channels: {
        "dram_read": 4 * (steps + 1) * channels,
        "dram_write": 4 * steps * channels,
        "fp32": 2 * steps * channels,
    },
    # Either side is off by 2.1e-5 at most at these shapes, with |h| up to 45, over 60 draws on a CPU; times 2.
    rtol=0.0,
    atol=4e-5,
    clock="launch",
)
