"""Product of two bf16 matrices by mma.sync, two buffers against three stages: c = a b^T, as shared_matmul.py states it.

Predicted: cycles per K-step, at both depths: 2086 in the baseline, 1640 in the optimized side, which are the products alone.

Measured: RESULTS.md. Both depths gain less than predicted.

Why: the difference of the two depths gives a K-step alone (H200, clock of the sides' time stamps): 2170 cycles in the baseline
and 1820 in the optimized side. mma.sync makes 1353 FMAs per cycle, not 1280, so 1550 of these cycles are products. The tensor cores are
active in 69 % of the baseline's cycles and in 82 % of the optimized side's (sm__pipe_tensor_cycles_active): they rest in 270 cycles per
K-step. Hypothesis: the barrier at which warps wait for the slowest is 50 of them. tma_2d_pipeline, which has none, takes 1770, but its
threads copy nothing either. The rest is open.
A tile also takes 3.6 us in the baseline and 3.7 us in the optimized side outside its K-steps, which was not counted.
"""
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read 4.6 times, about as often as by torch.mm
# baseline: ch10/optimized_double_buffered_pipeline.cu

from shared_matmul import MATMUL

WORKLOAD = MATMUL
