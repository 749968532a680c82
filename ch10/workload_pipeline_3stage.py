"""Product of two bf16 matrices by mma.sync, two buffers against three stages: c = a b^T, as shared_matmul.py states it.

Expected 1.3x, and 1.18x at k = 8192 and 1.13x at 1024 on an H200 (2026-11-22). From one depth to the other a step takes 1.22 us and 1.03:
at 1.75 GHz, as in workload_double_buffered_pipeline.py, 2130 cycles where 2086 were counted, and 1800 where 1640 were. Beside its steps a
tile takes 3.4 and 3.7 us, of 23 and 20 at k = 1024, as nothing hides its first copies and its store; that was not counted. What the 160
cycles a step are is open: a clock below that, or warps that wait for the slowest. sm__cycles_elapsed.avg.per_second tells, and
smsp__average_warps_issue_stalled_barrier of a profile. It is not mma.sync: `peak` found it to make 1353 FMAs a cycle, and not 1280.
"""
# baseline: ch10/optimized_double_buffered_pipeline.cu

from shared_matmul import MATMUL

WORKLOAD = MATMUL
