"""Product of two bf16 matrices, from a thread an element to the best kernel for Hopper: a ladder of the lab's rungs."""
# predicts: pipeline_3stage = 0.00658 x baseline  (2.1 M FMAs per K-step in 1690 cycles of mma.sync instead of 36 L1 cycles per 256)
# predicts: tma_2d_pipeline = 0.97 x pipeline_3stage  (1640 cycles per K-step instead of 1690)
# predicts: warp_specialized_pipeline = 0.787 x tma_2d_pipeline  (wgmma's rate; 1.6 us to store a tile instead of 4 us)
# predicts: matmul_clustered = 1 x warp_specialized_pipeline  (rows are whole lines, so K-steps do not wait for the L2)
# needs: wgmma, tma, clusters
# instead: labs/blackwell_matmul:blackwell_matmul_pseudo
# traffic: a and b are 34 MB each, and blocks read the rows that they share through the L2
# reason: the baseline is the product as it is written down, on CUDA cores, which multiply at a sixteenth of the tensor cores' rate

from shared_matmul import matmul

WORKLOAD = matmul(
    ladder=(
        "ch10/optimized_pipeline_3stage.cu",
        "ch10/optimized_tma_2d_pipeline.cu",
        "ch10/optimized_warp_specialized_pipeline.cu",
        "ch10/optimized_matmul_clustered.cu",
    )
)
