"""One token through the feed-forward half of a decoder layer and the next norm, in the shapes of Llama 3.1 8B at the timed shape."""

import torch
from shared_nvfp4 import mlp

from common import Precision, Spec, Workload

BF16 = torch.bfloat16

WORKLOAD = Workload(
    inputs=lambda rand, hidden, inner: {
        "x": rand.normal(1, hidden, dtype=BF16),
        "norm": rand.uniform(hidden, dtype=BF16, low=0.8, high=1.2),
        "gate_up": rand.normal(2 * inner, hidden, dtype=BF16, std=hidden**-0.5),
        "down": rand.normal(hidden, inner, dtype=BF16, std=inner**-0.5),
    },
    outputs=lambda hidden, inner: {"y": Spec((1, hidden), BF16)},
    reference=lambda x, norm, gate_up, down: mlp(x, norm, lambda h: h @ gate_up.T, lambda h: h @ down.T),
    constants=("norm", "gate_up", "down"),
    time_at={"hidden": 4096, "inner": 14336},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"hidden": 128, "inner": 64},
        {"hidden": 4096, "inner": 96},  # three scales' worth more than whole tiles; and answers enough to see a wrong format
        {"hidden": 96, "inner": 2080},  # more blocks than a tile has
    ),
    # In the precision that `changes` admits: 4 bits a weight and 8 a block of 16.
    work=lambda hidden, inner: {"bf16": 6 * hidden * inner, "dram_read": 3 * hidden * inner * 9 // 16},
    rtol=0.01,
    atol=0.02,
    # An answer's error has a deviation of 0.168 on a CPU, and is normal; a run looks at a million answers. 6.5 of these.
    changes=Precision(rtol=0.05, atol=1.1),
)
