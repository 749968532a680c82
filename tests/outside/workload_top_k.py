"""The k largest values of every row, in falling order: y[r] = the first k of x[r] sorted."""
# reason: a sort passes over a row of 4096 about 12 times, a selection about once

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols, k: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols, k: {"y": Spec((rows, k), torch.float32)},
    reference=lambda x, k: x.sort(dim=1, descending=True).values[:, :k],
    time_at={"rows": 4096, "cols": 16384, "k": 16},
    cpu_at={"rows": 64, "cols": 4096, "k": 16},
    check_at=({"rows": 1, "cols": 1, "k": 1}, {"rows": 3, "cols": 65, "k": 7}, {"rows": 5, "cols": 32, "k": 32}),
    work=lambda rows, cols, k: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * k},
    rtol=0.0,  # values are moved, never computed
    atol=0.0,
)
