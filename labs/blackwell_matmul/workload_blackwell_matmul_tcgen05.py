"""Product of two bf16 matrices on Blackwell: mma.sync against tcgen05, both fed by the TMA."""
# needs: tcgen05, tma
# instead: labs/blackwell_matmul:blackwell_matmul_pipeline
# baseline: labs/blackwell_matmul/optimized_blackwell_matmul_tma.cu

from shared_matmul import matmul

WORKLOAD = matmul()
