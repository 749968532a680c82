"""Product of two bf16 matrices on Blackwell's tensor cores by pairs of SMs: c = a b^T, as shared_matmul.py states it.

The baseline is the optimized side of tmem_triple_overlap, which has the same roles in single SMs. So the ratio is of the pair alone.
"""
# needs: tcgen05, tma
# instead: ch10:wgmma_triple_overlap
# baseline: ch10/optimized_tmem_triple_overlap.cu

from shared_matmul import MATMUL

WORKLOAD = MATMUL
