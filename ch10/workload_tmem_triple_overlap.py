"""Product of two bf16 matrices on Blackwell's tensor cores, with sums in tensor memory: c = a b^T, as shared_matmul.py states it."""
# needs: tcgen05, tma
# instead: ch10:wgmma_triple_overlap

from shared_matmul import MATMUL

WORKLOAD = MATMUL
