"""Product of two bf16 matrices by Hopper's TMA and tensor cores, in one role or in two: c = a b^T, as shared_matmul.py states it."""

# needs: wgmma, tma
# baseline: ch10/optimized_matmul_wgmma.cu
from shared_matmul import MATMUL

WORKLOAD = MATMUL
