"""Softmax of the rows of a float32 matrix, each too long for the shared memory of a block: y[r, c] = exp(x[r, c]) / sum of exp(x[r, :]).

A row is 513 KB and a block may have 227 KB, so a block without a cluster can only read the row twice: the baseline does.

Predicted: the DRAM passes of both sides, three against two, and a guess of 7 % for blocks that wait for their cluster.

Measured: RESULTS.md. Both sides are near their predictions.
"""
# needs: clusters

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": 4 * rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=lambda x: torch.softmax(x, 1),
    time_at={"rows": 1056, "cols": 128256},  # the 128 256 words of Llama 3, 513 KB a row; 1056 = 8 for each SM of an H200
    check_at=(
        {"rows": 1, "cols": 1},
        {"rows": 3, "cols": 1000},  # seven of eight blocks have nothing
        {"rows": 2, "cols": 4097},  # one value more than each thread's first
        {"rows": 1, "cols": 131072},  # as long as a row may be
    ),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    # An exponent of up to 2^68 is rounded to 2^-18 where it is multiplied and where it is taken: emulated, the worst is off by 3.8e-6.
    rtol=1e-5,
    atol=0.0,
)
