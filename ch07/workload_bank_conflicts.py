"""Running sums along the rows of a float32 matrix of 32 columns: y[r, c] = x[r, 0] + ... + x[r, c].

Predicted: 32 floats of a warp take 66 wavefronts of shared memory in the baseline, a cycle each: 1 + 32 + 32 + 1.
Padding leaves 4. DRAM takes 15 cycles per SM to copy 32 floats, so DRAM sets the optimized side's time.

Measured: RESULTS.md. Both times and their ratio are near the prediction.

Why: the wavefronts are as counted: 139 million and 8.6 million.
(l1tex__data_pipe_lsu_wavefronts_mem_shared.sum, H200.)
Hypothesis: the optimized side misses its ceiling since an SM holds 5 of its blocks (launch__occupancy_limit_registers).
A block loads nothing while it sums and stores: of 15.9 cycles per instruction a warp waits 11.0 for loads (long_scoreboard, same profile).
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows: {"x": rand.normal(rows, 32)},
    outputs=lambda rows: {"y": Spec((rows, 32), torch.float32)},
    reference=lambda x: x.cumsum(dim=1),
    time_at={"rows": 1 << 21},  # 256 MiB each way: more than four times the H200's L2 of 60 MB
    check_at=(
        {"rows": 1},
        {"rows": 128},  # exactly one block
        {"rows": 129},
        {"rows": 4001},
    ),
    work=lambda rows: {"dram_read": 128 * rows, "dram_write": 128 * rows},
    # A row is 31 additions of sums around 6. Emulated, the worst of 2 x 67 million sums is off by 7.4e-6.
    # An H200's runs compared billions of sums; three were off by 1.01e-5, at sums of 21. The tolerance is twice that.
    # A float left out is off by about 1.
    rtol=0.0,
    atol=2e-5,
)
