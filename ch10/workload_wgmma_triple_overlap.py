"""Product of two bf16 matrices on Hopper's tensor cores, with sums in registers: c = a b^T, as shared_matmul.py states it.

Each side has the tile that suits it. A thread of the baseline holds its sums and the chunks that it loads: with 128 columns 64 and 32
registers, with 192 columns 96 and 40, of the 128 that two blocks an SM leave. At k = 8192 and 1024 it took an H200 2.71 ms and 0.41 ms
with 128 columns, and another one 3.24 ms and 0.42 ms with 192, which would flatter the pair: 2.32x and 2.29x, where 1.7x was expected.
The optimized side took 1.72 ms and 0.22 ms with 128 columns, 1.40 ms and 0.18 ms with 192. No GPU has run both sides as they now are,
so their ratio is a prediction, from times of two GPUs.
"""
# needs: wgmma, tma

from shared_matmul import MATMUL

WORKLOAD = MATMUL
