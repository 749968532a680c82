"""Copy a float32 matrix, against a baseline that has the technique too."""
# baseline: optimized_copy_tile.cu

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=lambda x: x.clone(),
    time_at={"rows": 4096, "cols": 4096},
    check_at=({"rows": 33, "cols": 68},),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
