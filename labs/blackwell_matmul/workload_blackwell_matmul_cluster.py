"""Product of two bf16 matrices whose rows are no whole lines of memory, so the L2 sets the time: blocks share what they read."""
# needs: wgmma, tma, clusters
# instead: labs/blackwell_matmul:blackwell_matmul_tcgen05
# baseline: labs/blackwell_matmul/optimized_blackwell_matmul_pipeline.cu

from shared_matmul import matmul

WORKLOAD = matmul(m=4000, n=4104, k=4072)
