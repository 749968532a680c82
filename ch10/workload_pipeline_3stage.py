"""Product of two bf16 matrices by mma.sync, two buffers against three stages: c = a b^T, as shared_matmul.py states it."""
# baseline: ch10/optimized_double_buffered_pipeline.cu

from shared_matmul import MATMUL

WORKLOAD = MATMUL
