"""Product of two bfloat16 matrices as tensor_core states it, with rows of whole 16 bytes: c[i, j] = sum over l of a[i, l] * b[l, j].

Two ideas come together: wgmma instead of mma.sync, and a pipeline with multicast and roles, which CUTLASS adds. Chapter 10 writes such a
pipeline by hand; its mma.sync kernel, ch10:pipeline_3stage, saves about two thirds of what CUTLASS saves at 8192.

Predicted: 256 cycles per step of 128 x 128 x 32 products, against 704. Measured: RESULTS.md.

Why the ratio is smaller: in cycles it is not, 833 and 804 per two tiles against 301 and 279 (H200), all more than predicted. But wgmma runs
at 1.61 and 1.57 GHz, where the baseline runs at 1.78. Hypothesis: tensor cores that never rest draw more power.
The step's DRAM traffic at 4096 is cuBLAS's, 203 MB (dram__bytes.sum).
"""
# traffic: with c, a and b are twice what the L2 holds: they are read more than twice, as by cuBLAS
# needs: wgmma, tma
# baseline: ch09/optimized_tensor_core.cu

from dataclasses import replace

from workload_tensor_core import WORKLOAD as PRODUCT

WORKLOAD = replace(
    PRODUCT,
    time_at={
        "4096": {"m": 4096, "n": 4096, "k": 4096},
        "8192": {"m": 8192, "n": 8192, "k": 8192},
    },
    check_at=(
        {"m": 1, "n": 8, "k": 8},  # one row, one group of 8: all but a corner of the tile is outside
        {"m": 256, "n": 256, "k": 64},  # whole tiles, one step
        {"m": 129, "n": 264, "k": 72},  # a row, a group and a group more
        {"m": 300, "n": 136, "k": 1000},  # three tiles down: of the second cluster one block has none of c
        {"m": 2305, "n": 4104, "k": 200},  # two tiles and more a block
    ),
    # As in tensor_core, but sums of 8192 products, cut off after every 8, are off by 9.7e-5 in the worst of 131072
    # elements, on a CPU; times 2.
    atol=2e-4,
)
