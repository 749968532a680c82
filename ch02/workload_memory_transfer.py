"""Score rows on the other GPU: `x` lies on this one, the rows go there, and scores[r] = sum over c of x[r, c] w[c] come back. Float32.

`width` is a multiple of 4. The weights lie on the other GPU from the start, as those of an expert or of a pipeline's next stage do.
"""
# needs: gpus 2
# instead: ch02:memory_tiers

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, width: {
        "x": rand.uniform(rows, width, low=0.5, high=1.5),
        "w": rand.uniform(width, low=0.5, high=1.5),
    },
    outputs=lambda rows, width: {"scores": Spec((rows,), torch.float32)},
    reference=lambda x, w: x @ w,
    time_at={"rows": 65536, "width": 1024},  # 256 MiB
    check_at=({"rows": 1, "width": 4}, {"rows": 67, "width": 132}, {"rows": 130, "width": 64}),
    work=lambda rows, width: {"peer": 4 * rows * width, "dram_read": 4 * rows * width},
    rtol=1e-5,  # positive terms: width / 32 + 5 additions, each off by at most 2^-24, with room
    atol=0.0,
    constants=("w",),
)
