"""Product of two bf16 matrices by mma.sync: c = a b^T, as shared_matmul.py states it.

Expected 1.7x, and 1.57x at k = 8192 and 1.35x at 1024 on an H200 (2026-11-22). An SM has 16 tiles. From one depth to the other a step takes
1.95 us and 1.21: at 1.75 GHz, which an H200 held with its tensor cores half busy (workload_cluster_multicast.py), 3410 cycles where 3648
were counted, and 2120 where 2086 were. So the optimized side's steps are as counted, and the baseline waits less for its loads. Beside its
steps a tile takes the optimized side 3.7 us more, of 23 at k = 1024, as nothing hides its first copies and its store; that was not counted,
and the baseline, which waits for all its loads alike, loses next to nothing there. Open is the clock, and with it the rate of mma.sync:
sm__cycles_elapsed.avg.per_second of a profile tells, sm__pipe_tensor_cycles_active, and bf16_mma_sync of `peak`.
"""
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read several times, as by torch.mm

from shared_matmul import MATMUL

WORKLOAD = MATMUL
