"""Product of two bf16 matrices on Hopper's tensor cores, with sums in registers: c = a b^T, as shared_matmul.py states it."""
# needs: wgmma, tma

from shared_matmul import MATMUL

WORKLOAD = MATMUL
