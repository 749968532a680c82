"""Product of two bf16 matrices by mma.sync, two buffers against three stages: c = a b^T, as shared_matmul.py states it.

Expected 1.3x, and 1.17x at k = 8192 and 1.13x at 1024 on an H200 (2026-11-23). From one depth to the other a step takes 1.21 us and 1.04:
at 1.79 and 1.76 GHz, as the sides' stamps have it, 2170 cycles where 2086 were counted, and 1820 where 1640 were. Of these 1550 are
products, as mma.sync makes 1353 FMAs a cycle (`peak`), and not 1280: tensor cores are active in 69 % of cycles, and in 82 %
(sm__pipe_tensor_cycles_active). So of 1820 cycles they rest in 270. The barrier of a step, at which warps wait for the slowest, is 50 of
them: tma_2d_pipeline has none, and takes 1770. The others are open; smsp__average_warps_issue_stalled of a deep_dive tells. Beside its
steps a tile takes 3.6 and 3.7 us, of 23 and 20 at k = 1024, as nothing hides its first copies and its store; that was not counted.

So on Hopper mma.sync comes to 62 % of the ceiling, which is that of wgmma: at 1353 FMAs a cycle to 77 %, and those run for 82 % of time.
"""
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read 4.6 times, about as often as by torch.mm
# baseline: ch10/optimized_double_buffered_pipeline.cu

from shared_matmul import MATMUL

WORKLOAD = MATMUL
