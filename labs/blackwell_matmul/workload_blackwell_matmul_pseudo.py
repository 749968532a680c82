"""Product of two bf16 matrices, from a thread an element to copies in flight: a ladder on mma.sync."""
# predicts: matmul_shared_tile = 0.444 x baseline  (8 cycles to convert 8 products of a warp instead of 18 for its cache lines)
# predicts: matmul_register_tile = 0.333 x matmul_shared_tile  (2 cycles of FMAs at 3/4 of their rate instead of 8 of conversions)
# predicts: baseline_double_buffered_pipeline = 0.167 x matmul_register_tile  (2.1 M FMAs per K-step in 3648 cycles instead of 96 per cycle)
# predicts: double_buffered_pipeline = 0.572 x baseline_double_buffered_pipeline  (2086 cycles per K-step instead of 3648)
# traffic: a and b are 34 MB each, and blocks read the rows that they share through the L2
# baseline: labs/blackwell_matmul/baseline_blackwell_matmul.cu
# reason: the baseline is the product as it is written down, on CUDA cores, which multiply at a sixteenth of the tensor cores' rate

from shared_matmul import matmul

WORKLOAD = matmul(
    ladder=(
        "ch10/optimized_matmul_shared_tile.cu",
        "ch10/optimized_matmul_register_tile.cu",
        "ch10/baseline_double_buffered_pipeline.cu",
        "ch10/optimized_double_buffered_pipeline.cu",
    )
)
