"""Optimized: CuTe DSL: threads and registers as in CUDA, in Python."""
# needs: fp8
# predicts: baseline 0.919 ms = 21 * rows * width / dram_copy on h100  (bytes per element of five kernels)
# predicts: optimized 0.131 ms = 3 * rows * width / dram_copy on h100  (2 bytes in, 1 out)
# proves: kernel kernel_cutlass_quantized_norm
# proves: launches == 1
# has: ld_128bit
# has: spills == 0

import torch
from shared_cubin import load

THREADS, WIDEST = 256, 8192  # as in kernel_cute_dsl.py


def prepare(x, weight):
    rows, width = x.shape
    if width % 8 or width > WIDEST:
        raise ValueError(f"width: found {width}; expected a multiple of 8 of at most {WIDEST}")
    y = torch.empty(rows, width, dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty(rows, device=x.device)
    quantized_norm = load(__file__)

    def step():
        quantized_norm(grid=(rows, 1, 1), block=(THREADS, 1, 1), args=[x, weight, y, scale, width])
        return y, scale

    return step
