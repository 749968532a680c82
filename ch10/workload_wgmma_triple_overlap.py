"""Product of two bf16 matrices on Hopper's tensor cores, with sums in registers: c = a b^T, as shared_matmul.py states it.

Each side has the tile that suits it. A thread of the baseline holds its sums and the chunks that it loads: with 128 columns 64 and 32
registers, with 192 columns 96 and 40, of the 128 that two blocks an SM leave. Two rows of 2026-11-22 say so; both are gone, as sides
changed. At k = 8192 and 1024, by the row in commit 938acf7, both with 128 columns, an H200 took 2.71 ms and 0.41 ms for the baseline
and 1.72 ms and 0.22 ms for the optimized side. By that in commit 9382a0e, both with 192, another one took 3.24 ms and 0.42 ms, and
1.40 ms and 0.18 ms: 2.32x and 2.29x, where 1.7x was expected, but with a baseline at its worse. No GPU has run both sides as they now
are, so their ratio is a prediction, from times of two GPUs.
"""
# needs: wgmma, tma

from shared_matmul import MATMUL

WORKLOAD = MATMUL
