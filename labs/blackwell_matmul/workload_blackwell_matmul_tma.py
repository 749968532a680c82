"""Product of two bf16 matrices by mma.sync: who copies the tiles, threads or the TMA."""
# needs: tma
# instead: labs/blackwell_matmul:blackwell_matmul_pseudo
# baseline: labs/blackwell_matmul/optimized_blackwell_matmul_pseudo.cu

from shared_matmul import matmul

WORKLOAD = matmul()
