"""Product of two bf16 matrices, from a thread an element to the best kernel for Hopper: a ladder of the lab's rungs."""
# needs: wgmma, tma, clusters
# instead: labs/blackwell_matmul:blackwell_matmul_pseudo
# traffic: a and b are 34 MB each, and blocks read the rows that they share through the L2
# reason: the baseline is the product as it is written down, on CUDA cores, which multiply at a sixteenth of the tensor cores' rate

from shared_matmul import matmul

WORKLOAD = matmul(
    ladder=(
        "ch10/optimized_pipeline_3stage.cu",  # expects: 152x, 36 L1 cycles for 256 products; mma.sync makes 128 x 256 x 64 in 1690 cycles
        "ch10/optimized_tma_2d_pipeline.cu",
        "ch10/optimized_warp_specialized_pipeline.cu",  # expects: 1.27x, the rate of wgmma, and 1.6 us a store instead of 4
        "ch10/optimized_matmul_clustered.cu",  # expects: 1.00x, rows are whole lines, so the L2 is not what steps wait for
    )
)
