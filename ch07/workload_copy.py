"""Copy an array of float32: y[i] = x[i].

Predicted: 3x. The baseline is held up by the L2, at 36 bytes per float: 4 read, and a 32-byte sector written.
The optimized side is held up by DRAM, at 8 bytes per float. The L2 is assumed to be 1.5 times as fast as DRAM.

Measured: RESULTS.md. Both times and their ratio are near the prediction. Two errors nearly cancel in the baseline's time.

Why: a baseline request stores 4 bytes into each of 32 sectors, and the L1 merges only a third of these stores.
67 million floats leave the L1 as 42 million partial-sector writes (profile of an H200).
Each one costs the L2 more than assumed: a cycle for its request, if no neighbour shares it, and a cycle for the partial sector.
(workload_transpose.py has the counters.)
The loads cost little: the L1 keeps a sector until the thread has read all 8 of its floats.
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x.clone(),
    time_at={"n": 1 << 26},  # 256 MiB each way: more than four times the H200's L2 of 60 MB
    check_at=(
        {"n": 1},
        {"n": 7},  # less than the 8 floats of one baseline thread
        {"n": 2048},  # exactly one block
        {"n": 2049},
        {"n": 100_003},  # prime: ends inside a thread's 8 floats, inside a warp and inside a block
    ),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
