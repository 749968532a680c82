"""The largest value of each column of silu(x w), for sequences of many lengths."""

import torch
from torch.nn.functional import silu

from common import Spec, Workload


def inputs(rand, lengths, width):
    return {
        "sequences": [rand.normal(8 * (i + 1), width) for i in range(lengths)],
        "w": rand.normal(width, width, std=width**-0.5),
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda lengths, width: {"y": Spec((lengths, width), torch.float32)},
    reference=lambda sequences, w: torch.stack([silu(x @ w).amax(dim=0) for x in sequences]),
    time_at={"lengths": 16, "width": 512},
    cpu_at=None,
    check_at=({"lengths": 4, "width": 16}, {"lengths": 10, "width": 48}),
    work=lambda lengths, width: {"fp32": 8 * lengths * (lengths + 1) * width * width},
    clock="launch",
    rtol=1e-5,  # float32 sums of up to 512 terms of both signs
    atol=1e-5,
)
