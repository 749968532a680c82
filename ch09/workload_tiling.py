"""Product of two float32 matrices: c[i, j] = sum over l of a[i, l] * b[l, j], in IEEE float32.

Predicted: the baseline by 2 cycles of shared memory per FMA of a warp, the optimized side by three quarters of the FMA rate.

Measured: RESULTS.md. The baseline is as predicted, the optimized side slower.

Why: it reaches 67 % of the FMA rate, cuBLAS 77 %. Its schedulers issue in 76 % of cycles (smsp__inst_issued.sum, H200), and
88 % of that is FMAs; cuBLAS's issue in 87 %. Per instruction a warp waits 4.75 cycles: 2.3 as another is issued (not_selected), 0.1 for
the next tile (long_scoreboard), 0.1 for shared memory (short_scoreboard), 0.5 at the barrier, and 0.6 in dispatch_stall, where cuBLAS has
0.1. Those are FMAs whose operands lie in one bank of the register file.

DRAM moves 396 MB in a step of cuBLAS and 637 MB here (dram__bytes.sum), where 201 MB are declared: a and b, 67 MB each, exceed the L2.
"""
# traffic: a and b, 67 MB each, are more than the L2 holds: they are read again, as by cuBLAS

import torch

from common import Spec, Workload


def inputs(rand, m, n, k):
    return {"a": rand.normal(m, k), "b": rand.normal(k, n, std=k**-0.5)}  # products of unit scale


def work(m, n, k):
    return {"fp32": 2 * m * n * k, "dram_read": 4 * (m * k + k * n), "dram_write": 4 * m * n}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda m, n, k: {"c": Spec((m, n), torch.float32)},
    reference=lambda a, b: a @ b,
    time_at={"m": 4096, "n": 4096, "k": 4096},
    check_at=(
        {"m": 1, "n": 1, "k": 1},
        {"m": 33, "n": 65, "k": 17},
        {"m": 128, "n": 128, "k": 32},
        {"m": 132, "n": 260, "k": 20},  # whole groups of 4, but no whole tiles
        {"m": 130, "n": 127, "k": 44},  # rows of a are aligned for 16-byte accesses, rows of b are not
    ),
    work=work,
    # One chain of 4096 FMAs an element, as on both sides, is off by at most 1.3e-5 over 2 M elements on a CPU; times 2.
    rtol=0.0,
    atol=3e-5,
)
