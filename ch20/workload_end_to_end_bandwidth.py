"""Pass a batch in pinned host memory through a SwiGLU layer on the device; the answers go back to pinned memory: y = (silu(x g) * x u) d.

An offline job has more activations than the device holds, so each layer's inputs come from the host and its outputs return there.
"""

import torch
from shared_swiglu import swiglu

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rows, width, inner):
    """Deviations that give outputs a size of 1."""
    return {
        "x": rand.normal(rows, width, dtype=BF16, where="pinned"),
        "gate_up": rand.normal(width, 2 * inner, dtype=BF16, std=width**-0.5),
        "down": rand.normal(inner, width, dtype=BF16, std=(inner * 0.36) ** -0.5),
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda rows, width, inner: {"y": Spec((rows, width), BF16, where="pinned")},
    reference=swiglu,
    time_at={"rows": 16384, "width": 4096, "inner": 4096},  # 128 MiB either way; copies and products take about as long
    cpu_at={"rows": 256, "width": 256, "inner": 128},
    check_at=(
        {"rows": 5, "width": 33, "inner": 20},  # fewer rows than chunks
        {"rows": 97, "width": 160, "inner": 64},  # no multiple of them
        {"rows": 128, "width": 64, "inner": 96},
    ),
    work=lambda rows, width, inner: {"h2d": 2 * rows * width, "d2h": 2 * rows * width, "bf16": 6 * rows * width * inner},
    rtol=2**-8,  # y is rounded to BF16
    atol=0.045,  # and so are both products, silu and what it is multiplied by
    constants=("gate_up", "down"),
)
