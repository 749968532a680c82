"""Last state of a recurrent layer for sequences of different lengths: h = tanh(x[t] + h @ u) for every step that a sequence has.

Predicted: half of the flops, less what copying rows of x costs. Measured: RESULTS.md; the gain is smaller.

Why: the optimized side makes fewer flops per second. No counter was read, so the cause is not known.
It alone has products of ever fewer rows, gathered rows of x, a sort, and one wait for the host.
"""

import torch

from common import Spec, Workload


def inputs(rand, steps, sequences, width):
    return {
        "x": rand.normal(steps, sequences, width),
        "u": rand.normal(width, width, std=width**-0.5),
        "lengths": rand.integers(sequences, low=1, high=steps + 1),
    }


def reference(x, u, lengths):
    last = torch.zeros_like(x[0])
    for t, now in enumerate(x):
        takes = lengths > t
        last[takes] = torch.tanh(now[takes] + last[takes] @ u)
    return last


def work(steps, sequences, width):
    taken = sequences * (steps + 1) // 2  # half of all steps: a length is as likely as any other
    return {"fp32": 2 * taken * width * width, "dram_read": 4 * width * (taken + width), "dram_write": 4 * sequences * width}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda steps, sequences, width: {"h": Spec((sequences, width), torch.float32)},
    reference=reference,
    time_at={"steps": 64, "sequences": 4096, "width": 1024},
    cpu_at={"steps": 32, "sequences": 256, "width": 128},
    check_at=(
        {"steps": 1, "sequences": 1, "width": 1},
        {"steps": 5, "sequences": 33, "width": 17},
        {"steps": 32, "sequences": 65, "width": 64},
    ),
    work=work,
    # Either side is off by 1.2e-6 in 30 draws at `cpu_at`; at `time_at` by 3.5e-6 to 5.3e-6 in the worst of 4 million values on an H200, in
    # five calls; times 4. TF32 would round every factor by up to 2^-11.
    rtol=0.0,
    atol=2e-5,
    clock="launch",
    constants=("u",),
)
