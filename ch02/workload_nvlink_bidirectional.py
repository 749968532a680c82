"""Swap blocks of a cache with the other GPU: `x` goes to its memory, and `parked`, which lies there, comes back as `fetched`. Float32.

What arrived is shown by the other GPU: scores[r] = sum over c of x[r, c] w[c], from its own memory. `width` is a multiple of 4. `parked`
is constant: a side puts it into the other GPU's memory once.
"""
# needs: gpus 2
# instead: ch02:memory_tiers

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, width: {
        "x": rand.uniform(rows, width, low=0.5, high=1.5),
        "parked": rand.uniform(rows, width, low=0.5, high=1.5),
        "w": rand.uniform(width, low=0.5, high=1.5),
    },
    outputs=lambda rows, width: {"scores": Spec((rows,), torch.float32), "fetched": Spec((rows, width), torch.float32)},
    reference=lambda x, parked, w: (x @ w, parked.clone()),
    time_at={"rows": 65536, "width": 1024},  # 256 MiB in each direction
    check_at=({"rows": 1, "width": 4}, {"rows": 67, "width": 132}, {"rows": 130, "width": 64}),
    work=lambda rows, width: {"peer_both": 8 * rows * width, "dram_read": 4 * rows * width},
    rtol=1e-5,  # positive terms: width / 32 + 5 additions, each off by at most 2^-24, with room
    atol=0.0,
    constants=("parked", "w"),
)
