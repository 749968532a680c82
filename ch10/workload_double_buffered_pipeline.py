"""Product of two bf16 matrices by mma.sync: c = a b^T, as shared_matmul.py states it.

Predicted: cycles per K-step, at both depths: 3648 in the baseline, 2086 in the optimized side.

Measured: RESULTS.md. The shallow product gains less than predicted.

Why: the difference of the two depths gives a K-step alone (H200, clock of the sides' time stamps): 3420 cycles in the baseline
and 2170 in the optimized side. mma.sync makes 1353 FMAs per cycle, not 1280, so 1550 of these cycles are products.
The tensor cores are active in 45 % and 69 % of all cycles (sm__pipe_tensor_cycles_active).
The optimized side spends 3.7 us per tile outside its K-steps, of 23 us at k = 1024: nothing hides a tile's first copies and its store.
The prediction counted only K-steps.
"""
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read several times, as by torch.mm

from shared_matmul import MATMUL

WORKLOAD = MATMUL
