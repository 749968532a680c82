"""Product of two bf16 matrices by mma.sync, three stages that threads fill against the TMA: c = a b^T, as shared_matmul.py states it."""
# needs: tma
# baseline: ch10/optimized_pipeline_3stage.cu

from shared_matmul import MATMUL

WORKLOAD = MATMUL
