"""Product of two bf16 matrices by mma.sync, three stages that threads fill against the TMA: c = a b^T, as shared_matmul.py states it.

Predicted: cycles per K-step, at both depths: 1690 in the baseline, 1640 in the optimized side.

Measured: RESULTS.md. Both depths gain what was predicted.

Why: the difference of the two depths gives a K-step alone (H200, clock of the sides' time stamps): 1820 cycles in the baseline
and 1770 in the optimized side, so 50 fewer, as predicted. The tensor cores are active in 82 % and 85 % of all cycles
(sm__pipe_tensor_cycles_active). What else they wait for is the same in both sides: see workload_pipeline_3stage.py.
"""
# needs: tma
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read 4.6 times, about as often as by torch.mm
# baseline: ch10/optimized_pipeline_3stage.cu

from shared_matmul import MATMUL

WORKLOAD = MATMUL
