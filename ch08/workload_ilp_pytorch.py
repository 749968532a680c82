"""A leaky integrator over time, for many channels: h[t] = decay * h[t - 1] + x[t], for steps in eights.

Expected 7x, as 72 launches are to 512, and 5.49x on an H200: over all of its time a launch takes 15.8 us in the baseline, and 20.5 in the
optimized side, which has as many views an operation; so something but launches counts, and what is open. The host sets the pace, at 1 % of
what memory can do, and calls of a side differ by 1.8 times.
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
