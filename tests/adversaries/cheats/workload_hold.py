"""The row sums of workload_sum, where what counts is the device memory that a side's process holds during a step."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.uniform(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows,), torch.float32)},
    reference=lambda x: x.sum(dim=1),
    time_at={"rows": 4096, "cols": 2048},  # 32 MiB
    check_at=({"rows": 3, "cols": 65}, {"rows": 128, "cols": 192}),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows},
    rtol=1e-6,  # as in workload_sum
    atol=0.0,
    goal="memory",
)
