"""Takes logarithms: y[i] = log(x[i]), of which half are NaN, as those of negative numbers are."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x.log(),
    time_at={"n": 1 << 24},
    cpu_at={"n": 1 << 20},
    check_at=({"n": 33}, {"n": 1024}),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    rtol=1e-5,
    atol=1e-6,
)
