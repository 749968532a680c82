"""Layers y = silu((x w) scale) of a few rows, with 8-bit weights and a scale a column: how a quantized model decodes a small batch."""

import torch
from torch.nn.functional import silu

from common import Spec, Workload

BF16 = torch.bfloat16
CODE = 73.3  # deviation of codes uniform in -127 .. 127


def inputs(rand, layers, rows, width):
    scale = (2 / width) ** 0.5 / CODE  # a gain of sqrt(2) a layer makes up for what SiLU takes away
    return {
        "x": rand.normal(rows, width, dtype=BF16),
        "weights": [rand.integers(width, width, low=-127, high=128, dtype=torch.int8) for _ in range(layers)],
        "scales": [rand.uniform(width, dtype=BF16, low=0.5 * scale, high=1.5 * scale) for _ in range(layers)],
    }


def reference(x, weights, scales):
    for weight, scale in zip(weights, scales, strict=True):
        x = silu((x @ weight.to(x.dtype)) * scale)
    return x


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, rows, width: {"y": Spec((rows, width), BF16)},
    reference=reference,
    constants=("weights", "scales"),
    time_at={"layers": 4, "rows": 16, "width": 8192},
    cpu_at={"layers": 2, "rows": 16, "width": 256},
    check_at=({"layers": 1, "rows": 3, "width": 64}, {"layers": 4, "rows": 33, "width": 200}),
    work=lambda layers, rows, width: {"bf16": 2 * layers * rows * width * width, "dram_read": layers * width * width},
    rtol=2**-7,  # bfloat16 rounds a layer's product, its scaling and its SiLU, and the layers behind it carry that on:
    atol=0.06,  # on a CPU four eager layers of width 64 to 2048 are off by up to 0.037 more than rtol allows, of values near 0.8
)
