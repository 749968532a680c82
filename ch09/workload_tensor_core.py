"""Product of two bfloat16 matrices, summed and returned in float32: c[i, j] = sum over l of a[i, l] * b[l, j].

Predicted: cycles per pair of tiles, of which an SM multiplies 993. Measured: RESULTS.md; near the prediction.

Why: a pair takes 7010 cycles with FFMA instead of 5440, and 832 with mma.sync instead of 704 (H200), at 1.98 and 1.77 GHz.
The L1, through which shared memory is read, is the limit: busy for 90 % of cycles (l1tex__throughput), the tensor cores for 47 %.
Per pair of tiles it takes 384 wavefronts for ldmatrix, 128 to fill shared memory and 192 to load from global memory.
With eight lanes on 16 bytes each of 8 rows of a, loads took 576 wavefronts instead of 192, and the gain was smaller.
ch10:pipeline_3stage is faster: wider tiles need fewer wavefronts per product, and two steps are in flight.

DRAM moves 205 MB in a step of cuBLAS and 225 MB here (dram__bytes.sum), where 134 MB are declared: a and b are read 2.2 and 2.5 times.
"""
# traffic: with c, a and b are twice what the L2 holds: they are read more than twice, as by cuBLAS

import torch

from common import Spec, Workload


def inputs(rand, m, n, k):
    a = rand.normal(m, k, dtype=torch.bfloat16)
    return {"a": a, "b": rand.normal(k, n, dtype=torch.bfloat16, std=k**-0.5)}  # products of unit scale


def work(m, n, k):
    return {"bf16": 2 * m * n * k, "dram_read": 2 * (m * k + k * n), "dram_write": 4 * m * n}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda m, n, k: {"c": Spec((m, n), torch.float32)},
    reference=lambda a, b: a @ b,
    time_at={"m": 4096, "n": 4096, "k": 4096},
    check_at=(
        {"m": 1, "n": 1, "k": 1},
        {"m": 33, "n": 65, "k": 17},
        {"m": 128, "n": 128, "k": 64},
        {"m": 136, "n": 264, "k": 40},  # whole groups of 8, but no whole tiles
        {"m": 130, "n": 127, "k": 72},  # rows of a are aligned for 16-byte accesses, rows of b are not
    ),
    work=work,
    # Products of bf16 are exact; sums cut off to float32 after every 8, the roughest model of a tensor core, are off by 4.5e-5 in the worst
    # of 131072 elements at this depth, on a CPU, and a chain of FMAs by 6.7e-6. Times 2.2.
    rtol=0.0,
    atol=1e-4,
)
