"""Four layers y = silu(y w + b) of width 256 on many rows, in bfloat16: the network of a radiance field or of an implicit surface."""

import torch
from torch.nn.functional import silu

from common import Spec, Workload


def inputs(rand, layers, rows, width):
    return {
        "x": rand.normal(rows, width, dtype=torch.bfloat16),
        "weights": [rand.normal(width, width, dtype=torch.bfloat16, std=width**-0.5) for _ in range(layers)],
        "biases": [rand.normal(width, dtype=torch.bfloat16) for _ in range(layers)],
    }


def reference(x, weights, biases):
    for weight, bias in zip(weights, biases, strict=True):
        x = silu(x @ weight + bias)
    return x


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, rows, width: {"y": Spec((rows, width), torch.bfloat16)},
    reference=reference,
    constants=("weights", "biases"),
    time_at={"layers": 4, "rows": 262144, "width": 256},
    cpu_at={"layers": 2, "rows": 256, "width": 64},
    check_at=({"layers": 1, "rows": 3, "width": 64}, {"layers": 4, "rows": 1031, "width": 64}),
    work=lambda layers, rows, width: {
        "bf16": 2 * layers * rows * width * width,
        "dram_read": 2 * rows * width,
        "dram_write": 2 * rows * width,
    },
    rtol=2**-7,  # bfloat16 rounds a layer's product, its sum and its SiLU, and the layers behind it carry that on:
    atol=0.03,  # on a CPU four layers of width 256 are off by up to 0.02 more than rtol allows, of values near 0.7
)
