"""Product of two bf16 matrices, from a thread an element to copies in flight: a ladder on mma.sync."""
# traffic: a and b are 34 MB each, and blocks read the rows that they share through the L2
# baseline: labs/blackwell_matmul/baseline_blackwell_matmul.cu
# reason: the baseline is the product as it is written down, on CUDA cores, which multiply at a sixteenth of the tensor cores' rate

from shared_matmul import matmul

WORKLOAD = matmul(
    ladder=(
        "ch10/optimized_matmul_shared_tile.cu",
        "ch10/optimized_matmul_register_tile.cu",
        "ch10/baseline_double_buffered_pipeline.cu",  # expects: 6x, 96 FMAs a cycle; mma.sync makes a step in 3648 cycles
        "ch10/optimized_double_buffered_pipeline.cu",
    )
)
