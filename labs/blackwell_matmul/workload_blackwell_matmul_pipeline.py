"""Product of two bf16 matrices, from mma.sync to wgmma with a warpgroup that only loads: a ladder."""
# needs: wgmma, tma
# instead: labs/blackwell_matmul:blackwell_matmul_tcgen05
# baseline: labs/blackwell_matmul/optimized_blackwell_matmul_tma.cu

from shared_matmul import matmul

WORKLOAD = matmul(ladder=("ch10/optimized_matmul_wgmma.cu", "ch10/optimized_matmul_loader.cu", "ch10/optimized_matmul_walk.cu"))
