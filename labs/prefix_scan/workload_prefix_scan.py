"""Inclusive prefix sum of int32: y[i] = x[0] + ... + x[i]."""
# traffic: the baseline reads x twice, which is what the pair is about

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.integers(n, low=-8, high=8, dtype=torch.int32)},  # no sum leaves int32
    outputs=lambda n: {"y": Spec((n,), torch.int32)},
    reference=lambda x: torch.cumsum(x, 0, dtype=torch.int32),
    time_at={"n": 1 << 27},  # 512 MiB: ten times the L2
    # One value, part of a warp's row, a whole tile and one value more, several tiles. With the last, a block takes several tiles.
    check_at=({"n": 1}, {"n": 131}, {"n": 8192}, {"n": 8193}, {"n": 300_001}, {"n": 5_000_003}),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    ladder=("tile_per_block",),
    rtol=0.0,  # integers are exact
    atol=0.0,
)
