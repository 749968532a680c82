"""Product of two bf16 matrices, c = a b^T, from three loops to what a library does: every step of the ladder is one idea more.

What is expected of a step is over the step before, as the ladder's table has it; behind a file of another pair, which expects something
over its own baseline, it stands here. Tiles are 128 x 256, and a step of one, 64 deep, is 1024 cycles of products.

Ping-pong hides the draining of a tile, 2400 cycles, and is still slower: a warpgroup that drains has to have a tile to itself, whose sums
leave room for 192 columns, and for these shared memory takes 832 cycles a step where the products take 768. An SM makes 21 such tiles at
8192, 6 at 4096 and 6 at the awkward shape, where it made 16, 4 and 5 of 128 x 256: 0.95x, 0.85x and 1.06x. So the ladder goes on from the
step before it, and what the next one gains is that the tile is wide again: 1.05x, 1.18x and 0.94x. Over warp_specialized_pipeline it gains
1.00x, since at these tiles a step waits for shared memory and not for the L2, from which clusters take a third of the load.

The last step divides what 66 clusters leave of 15.5 waves at 8192, 3.9 at 4096 and 4.1 at the awkward shape: at best 1.03x, 1.03x and
1.21x. To pass partial sums on takes a tile 8 steps of time, so 1.03x, 1x, as 8 idle steps are not worth it, and 1.18x.
"""

# needs: wgmma, tma, clusters
# reason: the baseline is the product as it is written down, on CUDA cores; tensor cores make 2048 products a cycle, CUDA cores 128
from shared_clustered_matmul import clustered

WORKLOAD = clustered(
    {
        "large": {"m": 8192, "n": 8192, "k": 8192},  # 15.5 waves of tiles of 256 x 256
        "medium": {"m": 4096, "n": 4096, "k": 4096},  # 3.9 waves
        "awkward": {"m": 4000, "n": 4104, "k": 4072},  # 4.1 waves, of which 16 tiles have 8 columns
    },
    ladder=(
        "shared_tile",
        "register_tile",
        "ch10/baseline_double_buffered_pipeline.cu",  # expects: 6x, 96 FMAs a cycle; mma.sync makes 2.1 M in 3648, of which it runs in 1640
        "ch10/optimized_double_buffered_pipeline.cu",
        "ch10/optimized_pipeline_3stage.cu",
        "ch10/optimized_tma_2d_pipeline.cu",
        "wgmma",
        "loader",
        "walk",
        "ch10/optimized_warp_specialized_pipeline.cu",  # expects: 1.04x at 8192, 1.08x at 4096: a store takes 1.6 us, not 5, by the TMA
        "ch10/optimized_wgmma_triple_overlap.cu",  # expects: 0.95x at 8192, 0.85x at 4096, 1.06x at the awkward shape: a narrower tile
        "clustered",
        "ch10/optimized_persistent_matmul.cu",  # expects: 1.02x at 8192, 1.04x at 4096: 2400 cycles to store go on under products
    ),
)
