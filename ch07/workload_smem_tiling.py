"""Multiply float32 matrices: c[i, j] = sum over p of a[i, p] b[p, j], for a of m x k and b of k x n.

Predicted: 1.45x. A warp's 32 steps over p take 64 wavefronts of the L1 in the baseline: a float of a and 32 floats of b per step.
With tiles they take 44: 8 for a (4 floats per load), 32 for b, 2 to store the tiles and 2 to load them.

Measured: RESULTS.md. Both sides are slower than predicted, by factors that nearly cancel in the ratio.

Why: neither side fills the L1 (l1tex__throughput in expectations_h200.json). The baseline waits on the queue of memory instructions.
(lg_throttle: 13.2 cycles per instruction, H200.)
The optimized side needs 52 wavefronts, not 44: a 16-byte load of one address by all lanes takes 2.
(l1tex__data_pipe_lsu_wavefronts_mem_shared.sum: 50 per 32 steps, H200.)
So tiling saves 64 / 52 in wavefronts, and the rest of the gain is a busier L1: lg_throttle is gone.
The optimized side's limit is 1.6 wavefronts per FMA of a warp. A thread with one entry of c cannot have fewer.
"""

import torch

from common import Spec, Workload


def work(m, n, k):
    return {"fp32": 2 * m * n * k, "dram_read": 4 * (m * k + k * n), "dram_write": 4 * m * n}


WORKLOAD = Workload(
    inputs=lambda rand, m, n, k: {"a": rand.normal(m, k), "b": rand.normal(k, n, std=k**-0.5)},  # entries of c have unit scale
    outputs=lambda m, n, k: {"c": Spec((m, n), torch.float32)},
    reference=lambda a, b: a @ b,
    time_at={"m": 2048, "n": 2048, "k": 2048},
    check_at=(
        {"m": 1, "n": 1, "k": 1},
        {"m": 32, "n": 32, "k": 32},  # exactly one tile of each matrix
        {"m": 33, "n": 65, "k": 31},
        {"m": 50, "n": 40, "k": 130},
    ),
    work=work,
    # Both sides add 2048 products in the same order. Emulated, the worst of 4 million sums is off by 1.1e-5; the tolerance is twice that.
    rtol=0.0,
    atol=2.2e-5,
)
