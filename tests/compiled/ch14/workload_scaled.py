"""y = silu(a * x): one element read, one written."""

import torch
from torch.nn.functional import silu

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n), "a": rand.uniform(1)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x, a: silu(a * x),
    time_at={"n": 1 << 24},
    cpu_at=None,
    check_at=({"n": 1}, {"n": 1025}),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    rtol=1e-5,  # Triton's exp is off by a few times 2^-23
    atol=1e-6,
)
