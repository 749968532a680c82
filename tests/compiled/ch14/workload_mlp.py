"""Two matrix products with a GELU between them, in bfloat16: what a compiler can fuse is the GELU and the launches around it."""

import torch
from torch.nn.functional import gelu

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, width: {
        "x": rand.normal(rows, width, dtype=torch.bfloat16),
        "w1": rand.normal(width, 4 * width, dtype=torch.bfloat16, std=width**-0.5),
        "w2": rand.normal(4 * width, width, dtype=torch.bfloat16, std=(4 * width) ** -0.5),
    },
    outputs=lambda rows, width: {"y": Spec((rows, width), torch.bfloat16)},
    reference=lambda x, w1, w2: gelu(x @ w1) @ w2,
    constants=("w1", "w2"),
    time_at={"rows": 512, "width": 1024},
    cpu_at={"rows": 64, "width": 128},
    check_at=({"rows": 3, "width": 64}, {"rows": 33, "width": 96}),
    work=lambda rows, width: {"bf16": 16 * rows * width * width},
    clock="launch",
    rtol=2**-7,  # bfloat16 rounds x @ w1, its GELU and y: three times 2^-9 of values near 1
    atol=2**-5,
)
