"""Product of two bf16 matrices, from one buffer to copies in flight: a ladder on mma.sync."""
# predicts: double_buffered_pipeline = 0.572 x baseline  (2086 cycles per K-step instead of 3648)
# traffic: a and b are 34 MB each, and blocks read the rows that they share through the L2
# baseline: labs/blackwell_matmul/baseline_blackwell_matmul.cu

from shared_matmul import matmul

WORKLOAD = matmul(ladder=("ch10/optimized_double_buffered_pipeline.cu",))
