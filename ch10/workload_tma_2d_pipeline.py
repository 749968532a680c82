"""Product of two bf16 matrices by mma.sync, three stages that threads fill against the TMA: c = a b^T, as shared_matmul.py states it.

Expected 1.03x, and 1.04x at k = 8192 and 1.03x at 1024 on an H200 (2026-11-23). From one depth to the other a step takes 1.04 us and 1.00:
at 1.76 and 1.78 GHz, as the sides' stamps have it, 1820 and 1770 cycles, the 50 that were expected. Tensor cores are active in 82 and 85 %
of cycles (sm__pipe_tensor_cycles_active). What else they wait for is the same in both; see workload_pipeline_3stage.py.
"""
# needs: tma
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read 4.6 times, about as often as by torch.mm
# baseline: ch10/optimized_pipeline_3stage.cu

from shared_matmul import MATMUL

WORKLOAD = MATMUL
