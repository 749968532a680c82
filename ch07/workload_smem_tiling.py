"""Multiply float32 matrices: c[i, j] = sum over p of a[i, p] b[p, j], for a of m x k and b of k x n.

As much faster on an H200 as expected, but not by the turns expected: for 32 products ncu counts 50 of shared memory, not 42. The 8 loads of
4 floats of a that all lanes share take two turns each (l1tex__data_pipe_lsu_wavefronts_mem_shared.sum). With 2 for loads they are 52
instead of 64, 1.23x, and the L1 is 91 % busy instead of 80 (l1tex__throughput), since lg_throttle, 13.2 cycles an instruction, is gone.
These 91 % are what stops the optimized side at 18 % of its ceiling: 1.6 turns for an FMA of 32 lanes, which a thread with one entry of c
cannot have fewer of. mio_throttle, a full queue in front of shared memory, is 17.4 cycles an instruction.
"""

import torch

from common import Spec, Workload


def work(m, n, k):
    return {"fp32": 2 * m * n * k, "dram_read": 4 * (m * k + k * n), "dram_write": 4 * m * n}


WORKLOAD = Workload(
    inputs=lambda rand, m, n, k: {"a": rand.normal(m, k), "b": rand.normal(k, n, std=k**-0.5)},  # products of unit scale
    outputs=lambda m, n, k: {"c": Spec((m, n), torch.float32)},
    reference=lambda a, b: a @ b,
    time_at={"m": 2048, "n": 2048, "k": 2048},
    check_at=(
        {"m": 1, "n": 1, "k": 1},
        {"m": 32, "n": 32, "k": 32},  # one tile of each matrix exactly
        {"m": 33, "n": 65, "k": 31},
        {"m": 50, "n": 40, "k": 130},
    ),
    work=work,
    # Both sides add 2048 products in the same order: emulated, the worst of 4 million sums is off by 1.1e-5; times 2.
    rtol=0.0,
    atol=2.2e-5,
)
