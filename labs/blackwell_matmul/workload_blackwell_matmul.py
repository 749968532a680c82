"""Product of two bf16 matrices, from the first kernel on tensor cores to the best one for Hopper: a ladder of the lab's rungs."""
# predicts: pipeline_3stage = 0.498 x baseline  (1690 cycles per K-step instead of 3648)
# predicts: tma_2d_pipeline = 0.97 x pipeline_3stage  (1640 cycles per K-step instead of 1690)
# predicts: warp_specialized_pipeline = 0.787 x tma_2d_pipeline  (wgmma's rate; 1.6 us to store a tile instead of 4 us)
# predicts: matmul_clustered = 1 x warp_specialized_pipeline  (rows are whole lines, so K-steps do not wait for the L2)
# predicts@remainder: matmul_clustered = 0.798 x warp_specialized_pipeline  (products take longer than 32 KB a step, not than 48 KB)
# needs: wgmma, tma, clusters
# instead: labs/blackwell_matmul:blackwell_matmul_pseudo
# traffic: a and b are 34 MB each, and blocks read the rows that they share through the L2

from shared_matmul import matmul

WORKLOAD = matmul(
    ladder=(
        "ch10/optimized_pipeline_3stage.cu",
        "ch10/optimized_tma_2d_pipeline.cu",
        "ch10/optimized_warp_specialized_pipeline.cu",
        "ch10/optimized_matmul_clustered.cu",
    ),
    remainder=True,
)
