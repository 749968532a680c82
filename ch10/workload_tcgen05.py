"""Product of two bf16 matrices on Blackwell's tensor cores, one tile a block: c = a b^T, as shared_matmul.py states it."""
# needs: tcgen05, tma
# instead: ch10:wgmma_triple_overlap
# baseline: ch10/optimized_pipeline_3stage.cu

from shared_matmul import MATMUL

WORKLOAD = MATMUL
