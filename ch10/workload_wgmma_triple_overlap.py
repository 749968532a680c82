"""Product of two bf16 matrices on Hopper's tensor cores, with sums in registers: c = a b^T, as shared_matmul.py states it.

Each side has the tile that suits it. A thread of the baseline holds its sums and the chunks that it loads: with 128 columns 64 and 32
registers, with 192 columns 96 and 40, of the 128 that two blocks an SM leave. So a former baseline of 192 took an H200 3.24 ms and 0.42 ms
at k = 8192 and 1024 (its row is in commit 9382a0e), and one of 128 another H200 2.71 ms and 0.41 ms (938acf7). From the latter's times and
1.40 ms and 0.18 ms for the optimized side in 9382a0e, 1.94x and 2.23x were expected. One H200 has timed both sides since (2026-11-22): 2.70
ms became 1.41 ms, 1.92x, and 0.41 ms 0.19 ms, 2.20x. At 8192 tensor cores, active in 42 % of cycles, are active in 96
(sm__pipe_tensor_cycles_active, 2026-11-23).
"""
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read several times, as by torch.mm
# needs: wgmma, tma

from shared_matmul import MATMUL

WORKLOAD = MATMUL
